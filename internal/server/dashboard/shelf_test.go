package dashboard

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/trace"
)

// record writes episodes: e1 succeeds, e2 fails, e3 is void, e4 is cut off.
func record(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := trace.Open(dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []*trace.End{
		{Reason: "terminated", Success: true, Reward: 1, Steps: 2}, {Reason: "truncated", Reward: 0.5, Steps: 4}, {Reason: "closed"}, nil,
	} {
		id := fmt.Sprintf("e%d", i+1)
		r := s.Begin(trace.Header{EpisodeID: id, World: "shop", Task: []string{"buy", "sell"}[i%2], Seed: int64(i), Instruction: "Do it, " + id,
			Request: json.RawMessage(`{"task":"x","profile":"rough","max_steps":9}`)})
		info, _ := json.Marshal(gym.Info{Stages: []gym.Stage{{Name: "done", Weight: 1}}, Verdict: json.RawMessage(`{"stages":[{"name":"done","diff":"no row"}]}`)})
		r.Step(trace.Step{Step: 0, Observation: &gym.Observation{Title: "Start", Text: "a text\n\t[7] button 'Buy'"}, Info: info})
		r.Mark(trace.Mark{Kind: trace.KindCheckpoint, Checkpoint: "c1"})
		r.Step(trace.Step{Step: 1, Action: `click("7")`, Reward: 0.5, Info: info, Observation: &gym.Observation{LastAction: `click("7")`, Screenshot: &gym.Image{Format: "png", Data: []byte("PNG")}}})
		r.Mark(trace.Mark{Kind: trace.KindRestore, Checkpoint: "c1"})
		r.Step(trace.Step{Step: 1, Action: "b()", Reward: 0.25, Info: info, Observation: &gym.Observation{LastAction: "b()"}})
		if end != nil {
			r.End(*end)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A record that is being written, or was cut off, has no end line.
	cut := `{"kind":"header","format":1,"episode_id":"e4","task":"sell","instruction":"cut"}` + "\n" +
		`{"kind":"step","step":0,"observation":{"title":"t"}}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "e4", trace.FileName), []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func ask(t *testing.T, h *Handler, path string, out any) int {
	t.Helper()
	mux := http.NewServeMux()
	h.Routes(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+"api/"+path, nil))
	if out != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			t.Fatalf("%s: %v: %s", path, err, w.Body)
		}
	}
	return w.Code
}

func TestListOfEpisodes(t *testing.T) {
	t.Parallel()
	h := New(Config{Traces: record(t)})
	for query, want := range map[string]string{
		"": "e4 e3 e2 e1", "outcome=success": "e1", "outcome=failure": "e2", "outcome=void": "e4 e3", "task=buy": "e3 e1",
		"q=it,+e2": "e2", "end=cut_off": "e4", "profile=rough": "e3 e2 e1", "profile=-": "e4", "limit=1&from=1": "e3", "from=99": "",
	} {
		var got list
		if code := ask(t, h, "episodes?"+query, &got); code != 200 {
			t.Errorf("%s: status %d", query, code)
			continue
		}
		var ids []string
		for _, e := range got.Episodes {
			ids = append(ids, e.ID)
		}
		if strings.Join(ids, " ") != want {
			t.Errorf("%s: %v, want %s", query, ids, want)
		}
		if got.Total != 4 {
			t.Errorf("%s: total %d", query, got.Total)
		}
	}
	var all list
	ask(t, h, "episodes", &all)
	// What is void says nothing about the agent.
	if all.Success != 1 || len(all.ByTask) != 2 || all.Reward != 0.75 || all.Steps != 3 {
		t.Errorf("sum = %+v", all)
	}
	if code := ask(t, h, "episodes?limit=x", nil); code != 400 {
		t.Errorf("bad limit: status %d", code)
	}
}

// TestNewEpisodesAreFound: what is remembered of a record holds while it is the same.
func TestNewEpisodesAreFound(t *testing.T) {
	t.Parallel()
	dir := record(t)
	h := New(Config{Traces: dir})
	var l list
	ask(t, h, "episodes?outcome=success", &l)
	if len(l.Episodes) != 1 {
		t.Fatalf("episodes = %+v", l.Episodes)
	}
	if err := os.RemoveAll(filepath.Join(dir, "e1")); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "e4", trace.FileName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"kind":"end","reason":"terminated","success":true}` + "\n")
	_ = f.Close()
	ask(t, h, "episodes?outcome=success", &l)
	if len(l.Episodes) != 1 || l.Episodes[0].ID != "e4" || l.Total != 3 {
		t.Errorf("episodes = %+v", l.Episodes)
	}
}

func TestOneEpisode(t *testing.T) {
	t.Parallel()
	h := New(Config{Traces: record(t)})
	var f film
	if code := ask(t, h, "episodes/e1", &f); code != 200 {
		t.Fatalf("status %d", code)
	}
	if len(f.Rows) != 3 || f.Rows[1].Screen != "000001.png" || f.Rows[1].Total != 0.5 || f.Rows[1].Target != "button 'Buy'" || f.Rows[2].Total != 0.25 || f.Head.Limit != 9 {
		t.Errorf("film = %+v", f)
	}
	if len(f.Marks) != 2 || f.Marks[1] != (mark{Kind: "restore", Checkpoint: "c1", Before: 2}) {
		t.Errorf("marks = %+v", f.Marks)
	}
	var d detail
	if code := ask(t, h, "episodes/e1/steps/0", &d); code != 200 || !strings.HasPrefix(d.Text, "a text") || !strings.Contains(string(d.Verdict), "no row") {
		t.Errorf("step = %d %+v", code, d)
	}
	for path, want := range map[string]int{
		"episodes/e1/steps/3": 404, "episodes/e1/steps/x": 400, "episodes/nope": 404, "episodes/..": 404, "episodes/e1%2F..%2Fe2": 404, "episodes/%2e%2e": 404,
		"episodes/e1/screens/000001.png": 200, "episodes/e1/screens/trace.jsonl": 404, "episodes/e1/screens/..%2Fe2%2F000001.png": 404,
		"episodes/..%2F/screens/000001.png": 404, "episodes/e4/screens/000001.png": 200, "episodes/e9/screens/000001.png": 404,
	} {
		if got := ask(t, h, path, nil); got != want && (want != 404 || got != 301 && got != 307) {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
}

// TestPicturesStayInTheirFolder although a link points elsewhere.
func TestPicturesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	dir := record(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "e1", "000009.png")); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, New(Config{Traces: dir}), "episodes/e1/screens/000009.png", nil); code != 404 {
		t.Errorf("status %d for a link out of the folder", code)
	}
}

func TestTrainings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		data := `{"world":"shop","steps":10,"success_end":0.5,"curve":[{"steps":5,"smooth":0.1}]}`
		if err := os.WriteFile(filepath.Join(dir, name, trainingFile), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := New(Config{Training: []string{dir, filepath.Join(dir, "one"), filepath.Join(dir, "nowhere")}})
	var l struct{ Trainings []trainingHead }
	if ask(t, h, "training", &l); len(l.Trainings) != 2 || l.Trainings[0].SuccessEnd != 0.5 {
		t.Errorf("trainings = %+v", l)
	}
	var one struct{ Curve []map[string]float64 }
	if code := ask(t, h, "training/one", &one); code != 200 || len(one.Curve) != 1 {
		t.Errorf("training = %d %+v", code, one)
	}
	for _, name := range []string{"three", "..", "%2e%2e", ""} {
		if code := ask(t, h, "training/"+name, nil); code == 200 {
			t.Errorf("%q: status 200", name)
		}
	}
}

// TestAnswersAreGuarded: a page elsewhere neither frames the dashboard, nor asks it, nor
// gets a script into it.
func TestAnswersAreGuarded(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	New(Config{Traces: record(t)}).Routes(mux)
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		status int
	}{
		"typed":           {Path, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"by itself":       {Path + "api/episodes", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		"by a script":     {Path + "api/episodes", nil, 200},
		"linked":          {Path, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		"framed":          {Path, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		"asked elsewhere": {Path + "api/episodes", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		"opened answer":   {Path + "api/episodes", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
		"other file":      {Path + "web.go", nil, 404},
		"above":           {Path + "%2e%2e/go.mod", nil, 404},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, c.path, nil)
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		mux.ServeHTTP(w, r)
		if w.Code != c.status && (c.status != 404 || w.Code != 307) {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
		if head := w.Header(); w.Code != 307 && (!strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") || head.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: headers %v", name, head)
		}
		_, _ = io.Copy(io.Discard, w.Body)
	}
}
