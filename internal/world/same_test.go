package world_test

import (
	"fmt"
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
