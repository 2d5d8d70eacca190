package dashboard

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/pommelgym/pommel/web"
)

// policy lets the pages run our own scripts and load our own pictures, and nothing else:
// what a hostile page wrote into an episode stays text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// own guards all answers of the dashboard against other pages in the same browser. Requests
// that a foreign page causes are refused unless they open the dashboard itself as a page.
func own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		site := r.Header.Get("Sec-Fetch-Site")
		opened := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.URL.Path == Path
		if (site == "cross-site" || site == "same-site") && !opened {
			http.Error(w, "requests of other sites are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file serves the pages' own files.
func file(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	if name == "" {
		name = "index.html"
	}
	kind, known := types[path.Ext(name)]
	data, err := fs.ReadFile(web.Files, name)
	if err != nil || !known {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}
