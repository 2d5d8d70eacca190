package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Difference is one value that is not the same.
type Difference struct {
	// Path names the value, as observation.text or info.changes[0].new.placed_at.
	Path string `json:"path"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

const (
	// maxDifferences bounds how many are listed: after the first few, more do not help.
	maxDifferences = 20
	// maxLines bounds the lines shown of a long text, maxValue the length of a value.
	maxLines = 12
	maxValue = 400
)

type differ struct{ found []Difference }

func (d *differ) add(path, was, is string) {
	if len(d.found) < maxDifferences {
		d.found = append(d.found, Difference{Path: path, Was: was, Is: is})
	}
}

// walk compares two values of decoded JSON.
func (d *differ) walk(path string, a, b any) {
	switch was := a.(type) {
	case map[string]any:
		if is, ok := b.(map[string]any); ok {
			d.maps(path, was, is)
			return
		}
	case []any:
		if is, ok := b.([]any); ok {
			d.lists(path, was, is)
			return
		}
	case string:
		if is, ok := b.(string); ok {
			if was != is {
				d.texts(path, was, is)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		d.add(path, show(a), show(b))
	}
}

func (d *differ) maps(path string, a, b map[string]any) {
	names := map[string]bool{}
	for k := range a {
		names[k] = true
	}
	for k := range b {
		names[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		at := k
		if path != "" {
			at = path + "." + k
		}
		was, inA := a[k]
		is, inB := b[k]
		switch {
		case !inA:
			d.add(at, "(nothing)", show(is))
		case !inB:
			d.add(at, show(was), "(nothing)")
		default:
			d.walk(at, was, is)
		}
	}
}

func (d *differ) lists(path string, a, b []any) {
	for i := range max(len(a), len(b)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(a):
			d.add(at, "(nothing)", show(b[i]))
		case i >= len(b):
			d.add(at, show(a[i]), "(nothing)")
		default:
			d.walk(at, a[i], b[i])
		}
	}
}

// texts shows of long texts the lines that differ only.
func (d *differ) texts(path, a, b string) {
	was, is := strings.Split(a, "\n"), strings.Split(b, "\n")
	first := 0
	for first < len(was) && first < len(is) && was[first] == is[first] {
		first++
	}
	last := 0
	for last < len(was)-first && last < len(is)-first && was[len(was)-1-last] == is[len(is)-1-last] {
		last++
	}
	if len(was) > 1 || len(is) > 1 {
		path = fmt.Sprintf("%s line %d", path, first+1)
	}
	d.add(path, lines(was[first:len(was)-last]), lines(is[first:len(is)-last]))
}

func lines(l []string) string {
	if len(l) == 0 {
		return "(nothing)"
	}
	more := ""
	if len(l) > maxLines {
		more = fmt.Sprintf("\n... and %d lines more", len(l)-maxLines)
		l = l[:maxLines]
	}
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = clip(s)
	}
	return strings.Join(out, "\n") + more
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clip(string(b))
}

func clip(s string) string {
	if len(s) <= maxValue {
		return s
	}
	return strings.ToValidUTF8(s[:maxValue], "") + "..."
}

// Text writes differences for people: what was with -, what is with +.
func Text(list []Difference) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Path + "\n")
		for _, side := range []struct{ mark, text string }{{"  - ", d.Was}, {"  + ", d.Is}} {
			for line := range strings.SplitSeq(side.text, "\n") {
				b.WriteString(side.mark + line + "\n")
			}
		}
	}
	return b.String()
}
