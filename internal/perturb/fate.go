package perturb

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/perturb/plan"
)

// fate is what a firing does to a request and what can be seen of it. It does nothing in
// the end when what it needs is not there. Preconditions: d.mu is held.
func (d *Director) fate(rule *plan.Rule, f plan.Firing, r browser.Request) (browser.Fate, string, bool) {
	n := f.Numbers
	ms := func(name string) time.Duration { return time.Duration(n[name]) * time.Millisecond }
	switch rule.Kind {
	case "http.latency", "http.slow_asset", "http.reorder":
		return browser.Fate{Hold: ms("delay")}, "", true
	case "http.error":
		return browser.Fate{Answer: errorPage(r, n["status"], 0)}, statusText(n["status"]), true
	case "http.rate_limit":
		return browser.Fate{Answer: errorPage(r, 429, n["after"]/1000)}, statusText(429), true
	case "http.timeout":
		return browser.Fate{Hold: ms("delay"), Fail: "TimedOut"}, "no answer", true
	case "http.reset":
		return browser.Fate{Fail: "ConnectionReset"}, "connection reset", true
	case "http.lost_reply":
		status := n["status"]
		if status == 0 {
			return browser.Fate{Rewrite: func(browser.Answer) (*browser.Answer, string) { return nil, "ConnectionReset" }}, "connection reset", true
		}
		return browser.Fate{Rewrite: func(browser.Answer) (*browser.Answer, string) { return errorPage(r, status, 0), "" }}, statusText(status), true
	case "http.truncated":
		return browser.Fate{Rewrite: func(a browser.Answer) (*browser.Answer, string) {
			a.Body = a.Body[:len(a.Body)*n["percent"]/100]
			a.Headers = without(a.Headers, "content-length", "content-encoding")
			return &a, ""
		}}, "", true
	case "http.malformed":
		return browser.Fate{Rewrite: func(a browser.Answer) (*browser.Answer, string) {
			if a.Status >= 300 {
				return nil, ""
			}
			a.Body = []byte(gatewayPage("Gateway", "The response could not be processed."))
			a.Headers = without(a.Headers, "content-length", "content-encoding")
			return &a, ""
		}}, "", true
	case "http.stale":
		old, ok := d.state.old[r.URL]
		if !ok {
			return browser.Fate{}, "", false
		}
		return browser.Fate{Answer: &old}, "", true
	}
	return browser.Fate{}, "", false
}

// remember keeps what an address answered, for a cache that will be stale.
func (d *Director) remember(url string) func(browser.Answer) (*browser.Answer, string) {
	return func(a browser.Answer) (*browser.Answer, string) {
		if a.Status == 200 {
			a.Headers = without(a.Headers, "content-length", "content-encoding", "set-cookie")
			d.mu.Lock()
			defer d.mu.Unlock()
			d.state.old[url] = a
		}
		return nil, ""
	}
}

func without(headers [][2]string, names ...string) [][2]string {
	var out [][2]string
	for _, h := range headers {
		drop := false
		for _, n := range names {
			drop = drop || strings.EqualFold(h[0], n)
		}
		if !drop {
			out = append(out, h)
		}
	}
	return out
}

var statuses = map[int]string{
	429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Temporarily Unavailable", 504: "Gateway Time-out",
}

func statusText(status int) string {
	if s, ok := statuses[status]; ok {
		return strconv.Itoa(status) + " " + s
	}
	return strconv.Itoa(status) + " Error"
}

// errorPage is what a gateway in front of an application answers.
func errorPage(r browser.Request, status, retryAfter int) *browser.Answer {
	text := strings.TrimPrefix(statusText(status), strconv.Itoa(status)+" ")
	a := &browser.Answer{Status: status, Headers: [][2]string{{"Cache-Control", "no-store"}}}
	if retryAfter > 0 {
		a.Headers = append(a.Headers, [2]string{"Retry-After", strconv.Itoa(retryAfter)})
	}
	if strings.HasPrefix(r.Accept, "application/json") {
		a.Headers = append(a.Headers, [2]string{"Content-Type", "application/json"})
		a.Body = fmt.Appendf(nil, `{"error":{"code":%d,"message":%q}}`, status, text)
		return a
	}
	a.Headers = append(a.Headers, [2]string{"Content-Type", "text/html; charset=utf-8"})
	a.Body = []byte(gatewayPage(statusText(status), explain(status, retryAfter)))
	return a
}

func explain(status, retryAfter int) string {
	switch status {
	case 429:
		return fmt.Sprintf("You have sent too many requests. Please try again in %d seconds.", max(1, retryAfter))
	case 503:
		return "The server is temporarily unable to service your request. Please try again in a moment."
	}
	return "Something went wrong between you and the server. Please try again."
}

func gatewayPage(title, text string) string {
	return "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title + "</title></head>" +
		"<body style=\"font-family:sans-serif;max-width:36em;margin:4em auto;padding:0 1em\"><h1>" + title + "</h1><p>" + text + "</p><hr></body></html>"
}
