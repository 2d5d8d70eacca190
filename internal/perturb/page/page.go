// Package page holds what perturbations do inside of a document: one script that runs in
// the page's own world, where it makes elements as any page would.
package page

import (
	"embed"
	"encoding/json"
	"io/fs"
	"strings"
	"sync"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/plan"
	"github.com/pommelgym/pommel/internal/perturb/profile"
)

//go:embed *.js
var files embed.FS

// library joins the files in the order of their names.
var library = sync.OnceValue(func() string {
	var b strings.Builder
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return "" // an embedded folder is always there
	}
	for _, e := range entries {
		if text, err := files.ReadFile(e.Name()); err == nil {
			b.Write(text)
		}
	}
	return b.String()
})

// firing is what the script is told.
type firing struct {
	Pick      uint32            `json:"pick"`
	Numbers   map[string]int    `json:"numbers"`
	Texts     map[string]string `json:"texts"`
	Roles     []string          `json:"roles"`
	Selectors []string          `json:"selectors"`
}

// Script makes a firing happen. Its value is JSON: {seen, target}, or null when there was
// nothing in the document to act upon. A failure of it is no failure of the page.
func Script(k *kind.Kind, t profile.Targets, f plan.Firing) string {
	in, err := json.Marshal(firing{Pick: f.Pick, Numbers: orEmpty(f.Numbers), Texts: orEmpty(f.Texts), Roles: orNone(t.Roles), Selectors: orNone(t.Selectors)})
	if err != nil {
		return "null" // plain numbers and texts always encode
	}
	name, err := json.Marshal(k.Name)
	if err != nil {
		return "null"
	}
	own := ""
	if k.Script != "" {
		own = "kinds[" + string(name) + "]=()=>{" + k.Script + "\n};\n"
	}
	return "(()=>{'use strict';try{const F=" + string(in) + ";\n" + library() + own +
		"return JSON.stringify(kinds[" + string(name) + "]()||null);}catch(e){return JSON.stringify({failed:String(e)});}})()"
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

func orNone(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
