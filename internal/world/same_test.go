package world_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/world"
)

// drawing answers each request with what OpenSSL and Python draw at random.
const drawing = `exec python3 -c '
import http.server, os, ssl, uuid
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"<title>x</title>{ssl.RAND_bytes(8).hex()} {os.urandom(8).hex()} {uuid.uuid4()} {hash(str(self.path))}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", 8080), H).serve_forever()
'`

// TestWorldsDrawTheSame: worlds that were started apart give the same random numbers to the
// same seed, whoever draws them.
func TestWorldsDrawTheSame(t *testing.T) {
	t.Parallel()
	img, err := world.BuildImage(testContext(t), scriptWorld(t, drawing, `{tcp: "127.0.0.1:8080"}`,
		"CREATE TABLE drawn (u uuid DEFAULT gen_random_uuid(), r float DEFAULT random())"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for i := range 4 {
		w, err := world.Start(testContext(t), img, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Clocked(); err != nil {
			_ = w.Close()
			t.Skipf("unsupported: %v", err)
		}
		got, err := draw(t, w)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("world %d drew\n%sthe first\n%s", i, got, first)
		}
	}
}

func draw(t *testing.T, w *world.World) (string, error) {
	ctx := testContext(t)
	var out strings.Builder
	for seed := range uint64(2) {
		if err := w.BeginEpisode(ctx, w.Image().Spec.Clock, 1+seed); err != nil {
			return "", err
		}
		if err := w.Setup(ctx, []postgres.Statement{{SQL: "INSERT INTO drawn DEFAULT VALUES"}}); err != nil {
			return "", err
		}
		rows, err := w.Reader().Query(ctx, "SELECT u::text, r::text, gen_random_uuid()::text, random()::text FROM drawn")
		if err != nil {
			return "", err
		}
		for _, r := range rows.Text {
			fmt.Fprintln(&out, *r[0], *r[1], *r[2], *r[3])
		}
		if err := w.Browser().Navigate(ctx, w.Image().Spec.Browser.StartURL); err != nil {
			return "", err
		}
		o, err := w.Browser().Observe(ctx, browser.View{})
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, o.Text)
	}
	return out.String(), nil
}

// TestConnectionsDrawTogether: which connection to the database serves a request does not
// tell in the identifiers that it makes.
func TestConnectionsDrawTogether(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	img, err := world.BuildImage(ctx, scriptWorld(t, drawing, `{tcp: "127.0.0.1:8080"}`, "CREATE TABLE drawn (n int, u uuid DEFAULT gen_random_uuid())"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(ctx, img, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Clocked(); err != nil {
		t.Skipf("unsupported: %v", err)
	}
	query := func(sql string) string {
		rows, err := w.Reader().Query(ctx, sql)
		if err != nil {
			t.Fatal(err)
		}
		return *rows.Text[0][0]
	}
	one := func(int) string { return query("SELECT gen_random_uuid()::text") }
	other := func(n int) string {
		if err := w.Setup(ctx, []postgres.Statement{{SQL: fmt.Sprintf("INSERT INTO drawn VALUES (%d)", n)}}); err != nil {
			t.Fatal(err)
		}
		return query(fmt.Sprintf("SELECT u::text FROM drawn WHERE n = %d", n))
	}
	play := func(who ...func(int) string) (drawn []string) {
		if err := w.BeginEpisode(ctx, img.Spec.Clock, 7); err != nil {
			t.Fatal(err)
		}
		if err := w.Setup(ctx, []postgres.Statement{{SQL: "DELETE FROM drawn"}}); err != nil {
			t.Fatal(err)
		}
		for n, f := range who {
			drawn = append(drawn, f(n))
		}
		return drawn
	}
	first := play(one, one, one)
	for _, again := range [][]string{play(other, one, other), play(one, other, other)} {
		if !slices.Equal(again, first) {
			t.Errorf("drawn were %q, by one connection alone %q", again, first)
		}
	}
}
