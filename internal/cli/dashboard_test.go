package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/client"
	"github.com/pommelgym/pommel/internal/server/dashboard/pagetest"
)

// command runs another command of pommel's, and returns what it printed.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	exe := must(os.Executable())
	ctx, cancel := context.WithTimeout(t.Context(), pagetest.Patience*4)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = append([]string{"pommel"}, args...)
	cmd.Env = append(os.Environ(), "POMMEL_WORLDS="+must(filepath.Abs(filepath.Join("..", "..", "worlds"))))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pommel %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// shopping puts something into the cart that nobody asked for.
var shopping = []string{
	`fill(selector="#search", value="Kestrel Espresso Cup Set")`, `press(selector="#search", key_comb="Enter")`,
	`click(selector=".card h3 a[href='/p/kestrel-espresso-cup-set']")`, `fill(selector="#quantity", value="2")`, `click(selector="#add-to-cart")`, `click(selector="#cart-link")`,
	`finish("")`,
}

// play plays one episode over RPC and returns its chain after each step. between is called
// before each one.
func play(t *testing.T, sess *client.Session, seed int64, between func(id string)) []string {
	t.Helper()
	r, err := sess.Reset(t.Context(), client.Request{Task: "add-to-cart", Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	chain := []string{r.Info.GetObservationHash()}
	for _, action := range shopping {
		between(r.EpisodeID)
		if r, err = sess.Step(t.Context(), action); err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		if bad := r.Observation.GetLastActionError(); bad != nil {
			t.Errorf("%s: %v", action, bad)
		}
		chain = append(chain, r.Info.GetObservationHash())
	}
	return chain
}

// TestWatchingChangesNothing: an episode that is looked at before each step, with the
// dashboard open, is the same as one that nobody sees.
func TestWatchingChangesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "1")
	sess := s.session(t)
	alone := play(t, sess, 3, func(string) {})
	page := pagetest.Open(t, s.address+"/", 1280, 800)
	watched := play(t, sess, 3, func(id string) {
		for range 2 {
			req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.address+"/dashboard/api/episodes/"+id+"/look", nil))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "image/jpeg" {
				t.Errorf("look: %s", res.Status)
			}
		}
		page.Wait("document.querySelector('.thumb img')?.naturalWidth >= 1000")
	})
	for i := range alone {
		if alone[i] != watched[i] {
			t.Fatalf("the chains part at step %d: %s and %s", i, alone[i], watched[i])
		}
	}
	page.Clean()
}

// TestWorldsDoNotReachTheDashboard: it stands on the trainer's side.
func TestWorldsDoNotReachTheDashboard(t *testing.T) {
	t.Parallel()
	s := serve(t, "--worlds", "1")
	sess := s.session(t)
	if _, err := sess.Reset(t.Context(), client.Request{Task: "add-to-cart", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{s.address + "/dashboard/", s.address + "/dashboard/api/live", strings.Replace(s.address, "127.0.0.1", "localhost", 1) + "/dashboard/"} {
		r, err := sess.Step(t.Context(), fmt.Sprintf("goto(url=%q)", at))
		if err != nil {
			t.Fatal(err)
		}
		if r.Observation.GetLastActionError() == nil || strings.Contains(r.Observation.GetText(), "episodes") {
			t.Errorf("%s: %v, %.200s", at, r.Observation.GetLastActionError(), r.Observation.GetText())
		}
	}
}

// TestDashboardOfARealRun: played episodes, a training and live worlds are there to see.
// With POMMEL_SCREENSHOTS it leaves a picture of each page in that folder; see scripts/screenshots.
func TestDashboardOfARealRun(t *testing.T) {
	t.Parallel()
	pictures, data := os.Getenv("POMMEL_SCREENSHOTS"), os.Getenv("POMMEL_SCREENSHOTS_DATA")
	if data == "" {
		data = t.TempDir()
		traces := filepath.Join(data, "traces")
		command(t, "run", "--agent", "oracle", "--task", "buy-item", "--episodes", "1", "--profile", "rough", "--screens", "jpeg", "--traces", traces, "--json")
		command(t, "run", "--agent", "plain-oracle", "--task", "add-to-cart", "--episodes", "1", "--screens", "png", "--traces", traces, "--json")
		command(t, "train", "--tasks", "sign-in", "--steps", "20", "--evaluate", "0", "--traces", "off", "--out", filepath.Join(data, "training", "first"), "--json")
	}
	s := serve(t, "--worlds", "3", "--traces", filepath.Join(data, "traces"), "--training", filepath.Join(data, "training"))
	p := pagetest.Open(t, s.address+"/", 1440, 900)
	shot := func(name string) {
		p.Wait("[...document.images].every((i) => i.complete)")
		if pictures != "" {
			if err := os.WriteFile(filepath.Join(pictures, name+".png"), p.Screenshot(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	live(t, s, p)
	shot("live")
	tour(t, p, s.address, shot)
	p.Clean()
}

// live has two episodes run.
func live(t *testing.T, s *served, p *pagetest.Page) {
	t.Helper()
	for i, seed := range []int64{3, 4} {
		sess := s.session(t)
		r, err := sess.Reset(t.Context(), client.Request{Task: "add-to-cart", Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range shopping[:3+3*i] {
			if _, err := sess.Step(t.Context(), action); err != nil {
				t.Fatal(err)
			}
		}
		p.Has(r.Instruction)
	}
	p.Wait("document.querySelectorAll('.look').length === 2")
	p.Press("s")
	p.Wait("document.querySelectorAll('.thumb img').length === 1")
	p.Press("j", "s")
	p.Wait("document.querySelectorAll('.thumb img').length === 2")
}

// tour opens the other pages.
func tour(t *testing.T, p *pagetest.Page, address string, shot func(string)) {
	t.Helper()
	list := func(query string) (ids []string) {
		t.Helper()
		res, err := http.Get(address + "/dashboard/api/episodes?" + query) //nolint:noctx // a test's own server
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var l struct{ Episodes []struct{ ID string } }
		if err := json.NewDecoder(res.Body).Decode(&l); err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Episodes {
			ids = append(ids, e.ID)
		}
		return ids
	}
	p.Route("#/episodes")
	p.Has("buy-item", "rough", "mean reward")
	shot("episodes")
	rough, all := list("profile=rough&task=buy-item"), list("outcome=failure")
	if all = append(all, list("profile=-")...); len(rough) == 0 || len(all) == 0 {
		t.Fatalf("recorded: %q under rough, %q in all", rough, all)
	}
	first := rough[len(rough)-1]
	p.Route("#/episode/" + first)
	p.Wait("document.querySelector('img.screen')?.naturalWidth >= 390")
	p.Has("ordered", "Perturbations", "Rows written")
	p.Press("ArrowUp", "ArrowUp")
	p.Wait("document.querySelector('.step.current')?.dataset.index < document.querySelectorAll('.step').length - 1")
	p.Wait("document.querySelector('.stage .evidence')")
	shot("episode")
	p.Dark(true)
	p.Route("#/episode/" + all[0])
	p.Has("page time")
	shot("episode-dark")
	p.Dark(false)
	p.Route("#/compare/" + first + "/" + all[0])
	p.Has("part at step")
	shot("compare")
	p.Route("#/training")
	p.Has("Success of late", "sign-in")
	shot("training")
	p.Route("#/fleet")
	p.Has("Slow paths", "Leases", "waits for its caller")
	shot("fleet")
}
