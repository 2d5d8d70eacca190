package rewind

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// TestStack: an application and its database under one tree with two roots. The pool's
// connections live through every rewind, and so does the judge's, which comes from outside.
func TestStack(t *testing.T) {
	if !inside(t) {
		return
	}
	c := prepared(t)
	app := startTarget(t, "app", "APP_DB="+c.socket)
	url := "http://" + app.line()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	get := func(path string) string {
		t.Helper()
		resp, err := client.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, resp.Status, b, err)
		}
		return string(b)
	}
	judge := c.connect()
	many := func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				resp, err := client.Get(url + "/add?v=many")
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
		}
		wg.Wait()
	}
	for range 5 {
		many()
		get("/state")
		query(t, judge, "select count(*) from t")
	}
	tree := attach(t, Options{Roots: []int{c.cmd.Process.Pid, app.pid()}, Dirs: []string{c.data, "/dev/shm"}, Seal: true})
	s := snapshot(t, tree)
	state := get("/state")
	rows := query(t, judge, "select count(*), max(id) from t")
	added := get("/add?v=x")
	mustVerify(t, tree, s)
	var f figures
	for i := range soak(rounds) {
		many()
		get("/add?v=y")
		query(t, judge, "select count(*) from t where n<5")
		f.rewind(t, tree, s, i)
		if got := get("/state"); got != state {
			t.Fatalf("round %d: state %q, was %q", i, got, state)
		}
		if got := query(t, judge, "select count(*), max(id) from t"); got != rows {
			t.Fatalf("round %d: the judge sees %q, saw %q", i, got, rows)
		}
		if got := get("/add?v=x"); got != added {
			t.Fatalf("round %d: added %q, first time %q", i, got, added)
		}
		mustRewind(t, tree, s)
	}
	f.print(t, "stack of application and database")
}
