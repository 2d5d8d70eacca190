package action

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxLength bounds an action string; a page's text does not belong into one.
	maxLength = 256 << 10
	// maxCalls bounds the calls of one step.
	maxCalls = 100
)

// Parse reads an action string: one call or several, on lines of their own or parted
// by semicolons, with comments. Around the calls there may be prose, as models write
// it, but only before the first one: then every known call in the text is taken.
// The error, if any, is an *Error.
func Parse(text string) ([]Call, error) {
	if len(text) > maxLength {
		return nil, &Error{Kind: InvalidAction, Message: fmt.Sprintf("the action has %d bytes; at most %d are read", len(text), maxLength)}
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	calls, err := parseAll(text)
	if err != nil && !startsWithAction(text) {
		if found := search(text); len(found) > 0 {
			return found, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return calls, nil
}

func parseAll(text string) ([]Call, error) {
	s := &scanner{text: text}
	var calls []Call
	for {
		s.skip(true)
		if s.end() {
			break
		}
		c, err := s.call()
		if err == nil && len(calls) == maxCalls {
			err = s.errorf(s.pos, "more than %d calls in one action", maxCalls)
		}
		if err != nil {
			err.Call = len(calls)
			return nil, err
		}
		calls = append(calls, c)
		if !s.separated() {
			e := s.errorf(s.pos, "expected a new line or ';' after %s(...), found %s", c.Name, s.found())
			e.Call = len(calls)
			return nil, e
		}
	}
	if len(calls) == 0 {
		return nil, &Error{Kind: InvalidAction, Message: "the action is empty; write a call such as click('12') or finish()"}
	}
	return calls, nil
}

func startsWithAction(text string) bool {
	s := &scanner{text: text}
	s.skip(true)
	_, known := byName[s.name()]
	s.skip(false)
	return known && s.peek() == '('
}

// search takes every well-formed call out of prose.
func search(text string) []Call {
	var calls []Call
	for i := 0; i < len(text) && len(calls) < maxCalls; {
		s := &scanner{text: text, pos: i}
		name := s.name()
		if name == "" {
			i++
			continue
		}
		i += len(name)
		if _, known := byName[name]; !known {
			continue
		}
		s.pos = i - len(name)
		if c, err := s.call(); err == nil {
			calls = append(calls, c)
			i = s.pos
		}
	}
	return calls
}

// call reads one call and checks it against its signature.
func (s *scanner) call() (Call, *Error) {
	start := s.pos
	name := s.name()
	if name == "" {
		return Call{}, s.errorf(start, "expected the name of an action, found %s", s.found())
	}
	sig, known := byName[name]
	s.skip(false)
	if s.peek() != '(' {
		return Call{}, s.errorf(s.pos, "expected '(' after %q, found %s", name, s.found())
	}
	if !known {
		return Call{}, s.errorf(start, "there is no action %q; did you mean %s?", name, nearest(name))
	}
	s.pos++
	args, err := s.arguments()
	if err != nil {
		return Call{}, err
	}
	c := Call{Name: name, Source: s.text[start:s.pos]}
	if c.Args, err = s.bind(start, sig, args); err != nil {
		return Call{}, err
	}
	return c, nil
}

// argument is one argument as it was written.
type argument struct {
	name  string // "" for a positional one
	value any
	at    int
}

// arguments reads up to and with the closing parenthesis.
func (s *scanner) arguments() ([]argument, *Error) {
	var out []argument
	for {
		s.skip(true)
		if s.peek() == ')' {
			s.pos++
			return out, nil
		}
		a := argument{at: s.pos, name: s.keyword()}
		if a.name == "" && len(out) > 0 && out[len(out)-1].name != "" {
			return nil, s.errorf(s.pos, "an argument without a name cannot follow one with a name")
		}
		var err *Error
		if a.value, err = s.value(0); err != nil {
			return nil, err
		}
		out = append(out, a)
		s.skip(true)
		switch s.peek() {
		case ',':
			s.pos++
		case ')':
		default:
			return nil, s.errorf(s.pos, "expected ',' or ')', found %s", s.found())
		}
	}
}

// keyword reads "name =" if it stands here.
func (s *scanner) keyword() string {
	start := s.pos
	name := s.name()
	s.skip(true)
	if name != "" && s.peek() == '=' {
		s.pos++
		s.skip(true)
		return name
	}
	s.pos = start
	return ""
}

// bind gives every argument its parameter.
func (s *scanner) bind(at int, sig *Signature, args []argument) (map[string]any, *Error) {
	out := map[string]any{}
	set := func(p Param, name string, a argument) *Error {
		if _, twice := out[name]; twice {
			return s.errorf(a.at, "%s: argument %q is given twice", sig.Name, name)
		}
		v, why := p.accept(a.value)
		if why != "" {
			return s.errorf(a.at, "%s: argument %q %s", sig.Name, name, why)
		}
		out[name] = v
		if v == nil { // None for an optional argument is the same as leaving it out
			delete(out, name)
		}
		return nil
	}
	for i, a := range args {
		p, name, ok := sig.param(i, a)
		if !ok {
			return nil, s.errorf(a.at, "%s: %s; it takes %s", sig.Name, unexpected(a), sig.usage())
		}
		if err := set(p, name, a); err != nil {
			return nil, err
		}
	}
	return out, s.complete(at, sig, out)
}

func unexpected(a argument) string {
	if a.name == "" {
		return "too many arguments"
	}
	return fmt.Sprintf("there is no argument %q", a.name)
}

// param finds the parameter of an argument and the name under which its value is kept.
func (sig *Signature) param(i int, a argument) (Param, string, bool) {
	if a.name == "" {
		if i >= len(sig.Params) {
			return Param{}, "", false
		}
		p := sig.Params[i]
		// A first argument that cannot be a bid is a selector: click("#submit-order").
		if text, ok := a.value.(string); ok && p.Target && !bidShaped(text) {
			return p, SelectorName(p.Name), true
		}
		return p, p.Name, true
	}
	for _, p := range sig.Params {
		if p.Name == a.name || p.Target && SelectorName(p.Name) == a.name {
			return p, a.name, true
		}
	}
	return Param{}, "", false
}

// complete fills in defaults and says what is missing.
func (s *scanner) complete(at int, sig *Signature, out map[string]any) *Error {
	for _, p := range sig.Params {
		_, has := out[p.Name]
		if p.Target {
			_, bySelector := out[SelectorName(p.Name)]
			if has && bySelector {
				return s.errorf(at, "%s: give %s or %s, not both", sig.Name, p.Name, SelectorName(p.Name))
			}
			has = has || bySelector
		}
		switch {
		case has:
		case !p.Optional:
			return s.errorf(at, "%s: argument %q is missing; it takes %s", sig.Name, p.Name, sig.usage())
		case p.Default != nil:
			out[p.Name] = p.Default
		}
	}
	return nil
}

// usage is the signature as one would write it.
func (sig *Signature) usage() string {
	parts := make([]string, 0, len(sig.Params))
	for _, p := range sig.Params {
		name := p.Name
		if p.Target {
			name += "|" + SelectorName(p.Name)
		}
		if p.Optional {
			name = "[" + name + "]"
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return "no arguments"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// Usage is how the action is written, for help texts.
func (sig *Signature) Usage() string {
	if u := sig.usage(); strings.HasPrefix(u, "(") {
		return sig.Name + u
	}
	return sig.Name + "()"
}

// accept converts a value to the parameter's type or says what is wrong with it.
func (p Param) accept(v any) (any, string) {
	if v == nil && p.Optional {
		return p.Default, ""
	}
	switch p.Kind {
	case Text:
		// Models write bids as numbers; their meaning is clear.
		if n, ok := v.(float64); ok && p.Target && n >= 0 && n == float64(int64(n)) {
			v = fmt.Sprintf("%d", int64(n))
		}
		text, ok := v.(string)
		if !ok {
			return nil, "must be a text in quotes, not " + describe(v)
		}
		return text, p.among(text)
	case Number:
		if _, ok := v.(float64); !ok {
			return nil, "must be a number, not " + describe(v)
		}
	case Bool:
		if _, ok := v.(bool); !ok {
			return nil, "must be True or False, not " + describe(v)
		}
	case Texts:
		return p.acceptTexts(v)
	}
	return v, ""
}

func (p Param) acceptTexts(v any) (any, string) {
	if text, ok := v.(string); ok {
		return text, p.among(text)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, "must be a text or a list of texts, not " + describe(v)
	}
	for _, x := range list {
		text, ok := x.(string)
		if !ok {
			return nil, "must be a list of texts, but one of them is " + describe(x)
		}
		if why := p.among(text); why != "" {
			return nil, why
		}
	}
	return list, ""
}

func (p Param) among(text string) string {
	if len(p.OneOf) == 0 || slices.Contains(p.OneOf, text) {
		return ""
	}
	return fmt.Sprintf("is %q; it can be %s", text, strings.Join(p.OneOf, ", "))
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case []any:
		return "a list"
	default:
		return "a dict"
	}
}

// nearest names the known actions that are most like name.
func nearest(name string) string {
	best, bestD := []string{}, 1<<30
	for _, sig := range signatures {
		d := distance(name, sig.Name)
		if strings.HasPrefix(sig.Name, name) || strings.HasPrefix(name, sig.Name) {
			d = 1
		}
		switch {
		case d < bestD:
			best, bestD = []string{sig.Name}, d
		case d == bestD:
			best = append(best, sig.Name)
		}
	}
	return strings.Join(best[:min(3, len(best))], ", ")
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	if len(a) > 64 {
		a = a[:64]
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(cur[j]+1, prev[j+1]+1, prev[j]+cost)
		}
		prev = cur
	}
	return prev[len(b)]
}
