package action

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// String writes the call so that Parse reads it back.
func (c Call) String() string {
	sig, _ := SignatureOf(c.Name)
	names := make([]string, 0, len(c.Args))
	for n := range c.Args {
		names = append(names, n)
	}
	order := map[string]int{}
	for i, p := range sig.Params {
		order[p.Name], order[SelectorName(p.Name)] = i, i
	}
	sort.Slice(names, func(i, j int) bool {
		if order[names[i]] != order[names[j]] {
			return order[names[i]] < order[names[j]]
		}
		return names[i] < names[j]
	})
	var b strings.Builder
	b.WriteString(c.Name + "(")
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n + "=")
		writeLiteral(&b, c.Args[n])
	}
	b.WriteString(")")
	return b.String()
}

// Quote writes a text as a literal of the grammar.
func Quote(s string) string {
	var b strings.Builder
	writeLiteral(&b, s)
	return b.String()
}

func writeLiteral(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(describe(v))
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	case string:
		writeText(b, v)
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, x)
		}
		b.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteString(", ")
			}
			writeText(b, k)
			b.WriteString(": ")
			writeLiteral(b, v[k])
		}
		b.WriteByte('}')
	}
}

func writeText(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7F:
			b.WriteString(`\x` + strconv.FormatInt(int64(r)|0x100, 16)[1:])
		case r == utf8.RuneError:
			b.WriteString("\uFFFD")
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
