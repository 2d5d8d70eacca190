package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/server/dashboard/pagetest"
	"github.com/pommelgym/pommel/internal/trace"
)

// TestWhoSeesTheDashboard: who holds the server's token. Agents' tokens do not open it.
func TestWhoSeesTheDashboard(t *testing.T) {
	t.Parallel()
	locked := New(newScripted(t, script{}), Options{Token: "secret"})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))
	for name, c := range map[string]struct {
		header string
		status int
	}{
		"nobody":   {"", 401},
		"an agent": {"Bearer " + locked.agents.token("e1"), 401},
		"as agent": {"Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+locked.agents.token("e1"))), 401},
		"trainer":  {"Bearer secret", 200},
		"person":   {basic, 200},
	} {
		for _, path := range []string{"/dashboard/", "/dashboard/app.js", "/dashboard/api/live", "/dashboard/api/episodes", "/dashboard/api/fleet"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			locked.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s: %s: status %d, want %d", name, path, w.Code, c.status)
			}
			// A person's browser has to ask for it.
			if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
				t.Errorf("%s: %s: challenge %q", name, path, w.Header().Get("WWW-Authenticate"))
			}
		}
	}
	w := httptest.NewRecorder()
	New(newScripted(t, script{}), Options{NoDashboard: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/dashboard/api/live", nil))
	if w.Code != 404 {
		t.Errorf("without a dashboard: status %d", w.Code)
	}
}

// hostile is what a page says that wants to reach the trainer's side.
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>"'><svg onload=pwned=3>`

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

func hostileObservation(step int) *gym.Observation {
	picture, _ := base64.StdEncoding.DecodeString(onePixel)
	return &gym.Observation{
		URL: "javascript:window.pwned=4", Title: hostile, Text: "[1] button '" + hostile + "'\n\tStaticText 'step " + string(rune('0'+step)) + "'",
		Tabs: []gym.Tab{{URL: "javascript:pwned=5", Title: hostile, Active: true}}, Dialog: &gym.Dialog{Type: "alert", Message: hostile},
		LastActionError: &gym.ActionError{Kind: action.InvalidAction, Message: hostile},
		Elements:        []gym.Element{{Bid: "1", Role: hostile, Name: hostile, Box: [4]int{0, 0, 100, 20}, Interactive: true, InViewport: true}},
		Screenshot:      &gym.Image{Format: "png", Width: 1, Height: 1, Scale: 1, Data: picture},
	}
}

// hostileRecord has it in every place where a page's or an agent's text may stand.
func hostileRecord(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := trace.Open(dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q, _ := json.Marshal(hostile)
	verdict := `{"stages":[{"name":` + string(q) + `,"kind":"query","weight":1,"holds":false,"now":false,"diff":` + string(q) +
		`,"seen":{"columns":[` + string(q) + `],"rows":[[` + string(q) + `],[null]],"total":2},"expected":{"text":` + string(q) + `}}],
		"collateral":[{"table":` + string(q) + `,"rows":1,"new":[` + string(q) + `]}]}`
	h := hostile
	info, err := json.Marshal(gym.Info{
		Stages: []gym.Stage{{Name: hostile}}, Collateral: []string{hostile}, Verdict: json.RawMessage(verdict), Messages: []string{hostile}, Notes: []string{hostile},
		StillRunning: []string{hostile}, Changes: []gym.Change{{Table: hostile, Op: "update", Old: map[string]*string{hostile: nil}, New: map[string]*string{hostile: &h}}},
		Perturbations: []gym.PerturbationEvent{{Kind: hostile, Target: hostile, Seen: hostile, Texts: map[string]string{hostile: hostile}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r1", "r2"} {
		r := s.Begin(trace.Header{EpisodeID: id, World: "shop", Task: hostile, Instruction: hostile, Client: hostile, Split: hostile, Driver: hostile})
		for i := range 2 {
			o := hostileObservation(i)
			o.Screenshot = nil
			r.Step(trace.Step{Step: i, Action: hostile, Observation: o, Info: info})
		}
		r.Mark(trace.Mark{Kind: trace.KindCheckpoint, Checkpoint: hostile})
		r.End(trace.End{Reason: hostile, Detail: hostile, Steps: 1})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHostileTextStaysText in a real browser: whatever a page, an agent or a task wrote, the
// dashboard shows it and runs none of it.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{observation: hostileObservation}), Options{Traces: hostileRecord(t)}, "127.0.0.1:0")
	c := gymClient(t, srv.url)
	id := mustReset(t, c, &pommelv1.ResetRequest{Task: hostile, Client: hostile, View: &pommelv1.View{Screenshot: "png"}}).GetEpisodeId()
	if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Action: hostile}); err != nil {
		t.Fatal(err)
	}
	p := pagetest.Open(t, srv.url+"/", 1280, 800)
	for _, at := range []string{"#/live", "#/episode/" + id, "#/episode/r1", "#/compare/r1/r2", "#/episodes?q=img", "#/fleet", "#/episodes?compare=" + "%3Cimg%20src%3Dx%20onerror%3Dpwned%3D6%3E", "#/%3Cimg%20src=x%20onerror=pwned=7%3E"} {
		p.Route(at)
		if !strings.Contains(at, "pwned=7") && at != "#/fleet" {
			p.Has(hostile)
		}
		if strings.Contains(at, "/episode/") || strings.Contains(at, "/compare/") {
			p.Press("x") // the text in place of the picture
			p.Wait("document.querySelector('.observation')")
			p.Has("button '" + hostile)
			p.Press("x")
		}
		var bad []string
		p.Eval(`[...document.querySelectorAll("script:not([src='app.js']), iframe, object, [onerror], [onload], a[href^='javascript'], img[src='x']")].map((e) => e.outerHTML)
			.concat(window.pwned === undefined ? [] : ["pwned: " + window.pwned])`, &bad)
		if len(bad) > 0 {
			t.Errorf("%s: the page holds %q", at, bad)
		}
	}
	p.Clean()
}

// TestDashboardFollows: what callers do appears by itself, and with keys one gets about.
func TestDashboardFollows(t *testing.T) {
	t.Parallel()
	picture, _ := base64.StdEncoding.DecodeString(onePixel)
	hold := make(chan struct{})
	sessions := newScripted(t, script{
		observation: func(step int) *gym.Observation {
			return &gym.Observation{URL: "http://shop/", Title: "Page", Text: "page " + string(rune('0'+step)), Screenshot: &gym.Image{Format: "png", Width: 1, Height: 1, Data: picture}}
		},
		step: func(ctx context.Context, action string) error {
			if action == "wait()" {
				select {
				case <-hold:
				case <-ctx.Done():
				}
			}
			return nil
		},
	})
	srv := serve(t, sessions, Options{Token: "secret", Traces: filepath.Join(t.TempDir(), "none yet")}, "127.0.0.1:0")
	c := gymClient(t, srv.url, withToken("secret"))
	p := pagetest.Open(t, "about:blank", 1280, 800)
	p.Password("secret")
	p.Go(srv.url + "/")
	p.Has("No episode runs")
	id := mustReset(t, c, &pommelv1.ResetRequest{Task: "buy", Seed: 42, Client: "me"}).GetEpisodeId()
	p.Has("Do buy", "seed 42", "me", "lease")
	p.Wait("document.querySelector('.thumb img')?.naturalWidth === 1")
	stepped := make(chan error, 1)
	go func() {
		_, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Action: "wait()"})
		stepped <- err
	}()
	p.Wait("document.querySelector('.doing')?.innerText.includes('wait()')")
	p.Press("s")
	p.Has("is in a call") // a look disturbs no step
	close(hold)
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	p.Wait("!document.querySelector('.doing')")
	p.Press("s", "Enter")
	p.Has("page time", "step")
	p.Wait("location.hash.endsWith('?step=1')")
	if _, err := c.Step(t.Context(), &pommelv1.StepRequest{EpisodeId: id, Action: "finish()"}); err != nil {
		t.Fatal(err)
	}
	p.Wait("location.hash.endsWith('?step=2')") // it follows while one looks at the end
	p.Has("Success")
	p.Press("ArrowLeft", "x")
	p.Has("page 1")
	p.Press("d", "Home")
	p.Wait("location.hash.endsWith('?step=0')")
	p.Press("t")
	p.Wait("document.documentElement.dataset.theme")
	p.Press("?")
	p.Wait("document.querySelector('dialog[open]')?.innerText.includes('Step before')")
	p.Press("Escape", "f")
	p.Has("worlds busy", "Leases", "waits for its caller")
	p.Press("e")
	p.Has("Nothing is recorded here yet")
	p.Press("r")
	p.Has("No training is known here")
	p.Clean("/look") // it was refused while the step ran
}

// TestEventsEndWithTheServer: a reader who stays does not hold the server up, and readers
// renew no lease.
func TestEventsEndWithTheServer(t *testing.T) {
	t.Parallel()
	sessions := newScripted(t, script{})
	srv := serve(t, sessions, Options{}, "127.0.0.1:0")
	c := gymClient(t, srv.url)
	id := mustReset(t, c, &pommelv1.ResetRequest{LeaseMs: 1500}).GetEpisodeId()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.url+"/dashboard/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for seen := false; !seen; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		seen = strings.Contains(line, id)
	}
	// Asked again and again, the dashboard is no sign of the caller's life.
	for ended := false; !ended; {
		select {
		case got := <-sessions.ended:
			ended = got == id
		case <-time.After(20 * time.Millisecond):
			for _, path := range []string{"live", "fleet", "episodes/" + id, "episodes/" + id + "/steps/0"} {
				if code, body := get(t, srv.url+"/dashboard/api/"+path); code != 200 {
					t.Fatalf("%s: %d %s", path, code, body)
				}
			}
		case <-t.Context().Done():
			t.Fatal("the lease did not end")
		}
	}
	srv.stop()
	for err == nil {
		_, err = in.ReadString('\n')
	}
}
