package page

import (
	"strconv"
	"strings"
)

// scanner reads one line of an observation's text: see docs/observations.md for its grammar.
type scanner struct{ rest string }

func (s *scanner) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(s.rest, prefix)
	s.rest = rest
	return ok
}

// quoted reads a text in single or double quotes.
func (s *scanner) quoted() (string, bool) {
	if s.rest == "" || s.rest[0] != '\'' && s.rest[0] != '"' {
		return "", false
	}
	quote := s.rest[0]
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == quote:
			s.rest = s.rest[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(s.rest):
			i++
			switch e := s.rest[i]; e {
			case 'n', 't', 'r':
				b.WriteByte(' ')
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// word reads up to the next character of stops.
func (s *scanner) word(stops string) string {
	i := strings.IndexAny(s.rest, stops)
	if i < 0 {
		i = len(s.rest)
	}
	w := s.rest[:i]
	s.rest = s.rest[i:]
	return w
}

// list reads a list of quoted texts.
func (s *scanner) list() []string {
	var out []string
	s.skip("[")
	for {
		t, ok := s.quoted()
		if !ok {
			break
		}
		// "(disabled)" may follow an option.
		note := s.word(",]")
		if !strings.Contains(note, "disabled") {
			out = append(out, t)
		}
		if !s.skip(", ") {
			break
		}
	}
	s.word("]")
	s.skip("]")
	return out
}

func parseLine(line string) (Node, bool) {
	s := scanner{strings.TrimLeft(line, "\t")}
	n := Node{Depth: len(line) - len(s.rest)}
	if s.skip("[") {
		n.Bid = s.word("]")
		s.skip("] ")
	}
	n.Role = s.word(" ")
	if n.Role == "" || !s.skip(" ") {
		return n, false
	}
	var ok bool
	if n.Name, ok = s.quoted(); !ok {
		return n, false
	}
	if s.skip(" value=") {
		n.Value, _ = s.quoted()
	}
	for s.skip(", ") {
		n.attribute(&s)
	}
	return n, true
}

// attribute reads "key" or "key=value".
func (n *Node) attribute(s *scanner) {
	key := s.word("=,")
	value, list := "true", []string(nil)
	if s.skip("=") {
		if strings.HasPrefix(s.rest, "[") {
			list = s.list()
		} else if q, ok := s.quoted(); ok {
			value = q
		} else {
			value = s.word(",")
		}
	}
	on, _ := strconv.ParseBool(strings.ToLower(value))
	switch key {
	case "type":
		n.Type = value
	case "options":
		n.Options = list
	case "checked", "selected", "pressed":
		n.Checked = n.Checked || on
	case "disabled":
		n.Disabled = on
	case "current":
		n.Current = true
	case "focused":
		n.Focused = on
	case "required":
		n.Required = on
	case "expanded":
		n.Expanded = on
	case "modal":
		n.Modal = on
	}
}
