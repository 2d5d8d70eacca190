package action

import (
	"fmt"
	"strings"
)

var groups = []struct{ name, title string }{
	{"bid", "On elements"},
	{"coord", "At points"},
	{"nav", "Navigation"},
	{"tab", "Tabs"},
	{"dialog", "Dialogs"},
	{"chat", "Messages"},
	{"end", "Waiting and ending"},
}

// Markdown is the reference of all actions.
func Markdown() string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "## %s\n\n", g.title)
		for _, s := range signatures {
			if s.Group != g.name {
				continue
			}
			fmt.Fprintf(&b, "**`%s`** %s\n", s.Usage(), s.Doc)
			for _, p := range s.Params {
				fmt.Fprintf(&b, "- `%s`: %s\n", p.Name, p.describe())
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (p Param) describe() string {
	parts := []string{p.Doc, string(p.Kind)}
	if p.Target {
		parts[1] = fmt.Sprintf("or `%s=` in its place", SelectorName(p.Name))
	}
	if len(p.OneOf) > 0 {
		parts = append(parts, "one of "+strings.Join(p.OneOf, ", "))
	}
	if p.Optional && p.Default != nil {
		var d strings.Builder
		writeLiteral(&d, p.Default)
		parts = append(parts, "default "+d.String())
	} else if p.Optional {
		parts = append(parts, "optional")
	}
	return strings.Join(parts, "; ")
}
