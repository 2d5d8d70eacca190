package browser

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

//go:embed js/*.js
var agentFiles embed.FS

//go:embed page/*.js
var pageFiles embed.FS

// everywhere is the part of the agent that runs in every frame.
const everywhere = "00_world.js"

type sources struct{ world, rest, page string }

// source joins the embedded files, in the order of their names. Each file of the agent
// is a block, so that its helpers stay its own.
var source = sync.OnceValue(func() (s sources) {
	each(agentFiles, "js", func(name, text string) {
		if name == everywhere {
			s.world = text
			return
		}
		s.rest += "{\n" + text + "}\n"
	})
	each(pageFiles, "page", func(_, text string) { s.page += text })
	return s
})

func each(files embed.FS, dir string, f func(name, text string)) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return // embedded folders are always there
	}
	for _, e := range entries {
		b, err := fs.ReadFile(files, dir+"/"+e.Name())
		if err == nil {
			f(e.Name(), string(b))
		}
	}
}

// agentSource is what runs in the agent's own world at the start of every document.
func agentSource(secret string, allow []string) string {
	c := map[string]any{"secret": secret, "allow": nil}
	if allow != nil {
		origins := []string{}
		for _, o := range allow {
			origins = append(origins, normalOrigin(o))
		}
		c["allow"] = origins
	}
	s := source()
	return "(()=>{const C=" + encode(c) + ";\n" + s.world +
		"if (window !== window.top) return;\n" + s.rest + "})();"
}

// pageSource is what runs in the page's own world at the start of every document.
func (p *page) pageSource() string {
	var e episode
	var number int
	p.b.read(func() { e, number = p.b.now, p.number })
	c := map[string]any{
		"secret":  p.b.secret,
		"seed":    strconv.FormatUint(e.seed, 10),
		"tab":     number,
		"epoch":   e.epoch,
		"start":   e.raw,
		"horizon": p.b.cfg.Horizon.Milliseconds(),
	}
	return "(()=>{const C=" + encode(c) + ";\n" + source().page + "})();"
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null" // only plain maps are given
	}
	return string(b)
}

// normalOrigin writes an origin the way pages read it from location.origin.
func normalOrigin(o string) string {
	u, err := url.Parse(o)
	if err != nil {
		return o
	}
	host := strings.ToLower(u.Host)
	if (u.Scheme == "http" && u.Port() == "80") || (u.Scheme == "https" && u.Port() == "443") {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}
