package browser

import (
	"fmt"
	"html"
	"net/url"
	"strings"
)

// A document that fails is answered by the page that a person's browser would show, at the
// address that was asked for. The headless shell's own error page is blank, calls itself
// chrome-error://chromewebdata/, so that nobody can load it again, and lives in a process of its
// own, for which the renderer of the world's pages is ended.

// failures are the network errors of DevTools as Chrome shows them.
var failures = map[string]struct {
	code   string
	status int
	text   string // %s is the host
}{
	"ConnectionReset":   {"ERR_CONNECTION_RESET", 502, "The connection to %s was reset."},
	"ConnectionRefused": {"ERR_CONNECTION_REFUSED", 502, "%s refused to connect."},
	"TimedOut":          {"ERR_TIMED_OUT", 504, "%s took too long to respond."},
}

// unreachable is what stands in the place of a document that failed.
func unreachable(address, reason string) *Answer {
	f, ok := failures[reason]
	if !ok {
		f.code, f.status, f.text = "ERR_FAILED", 502, "%s could not be reached."
	}
	host := address
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	host = html.EscapeString(host)
	page := strings.Join([]string{
		`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>`, host, `</title></head>`,
		`<body style="font:15px/1.6 sans-serif;color:#5f6368;max-width:36em;margin:7em auto;padding:0 1em">`,
		`<h1 style="font-size:1.6em;font-weight:500">This site can’t be reached</h1><p>`, fmt.Sprintf(f.text, host), `</p><p><code>`, f.code, `</code></p>`,
		`<button type="button" onclick="location.reload()">Reload</button></body></html>`,
	}, "")
	return &Answer{
		Status:  f.status,
		Headers: [][2]string{{"Content-Type", "text/html; charset=utf-8"}, {"Cache-Control", "no-store"}},
		Body:    []byte(page),
	}
}
