package task

import (
	"regexp"
	"strings"
)

// reference is the inside of a `${...}`: a parameter and perhaps a column of it.
type reference struct {
	Name, Column string
	// Start and End are the byte offsets of the whole `${...}` in its text.
	Start, End int
}

func (r reference) String() string {
	if r.Column == "" {
		return "${" + r.Name + "}"
	}
	return "${" + r.Name + "." + r.Column + "}"
}

var (
	referencePattern = regexp.MustCompile(`\$\{([^{}]*)\}`)
	nameOnlyPattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// references finds the `${...}` of a text. ok is false for a malformed one.
func references(text string) (refs []reference, malformed []reference) {
	for _, m := range referencePattern.FindAllStringSubmatchIndex(text, -1) {
		r := reference{Start: m[0], End: m[1]}
		inside := text[m[2]:m[3]]
		name, column, hasColumn := strings.Cut(inside, ".")
		r.Name, r.Column = name, column
		if !nameOnlyPattern.MatchString(name) || hasColumn && column == "" {
			malformed = append(malformed, r)
			continue
		}
		refs = append(refs, r)
	}
	return refs, malformed
}

// fill replaces each `${...}` of a text by what lookup gives.
func fill(text string, lookup func(reference) (string, error)) (string, error) {
	refs, _ := references(text)
	var b strings.Builder
	last := 0
	for _, r := range refs {
		s, err := lookup(r)
		if err != nil {
			return "", err
		}
		b.WriteString(text[last:r.Start])
		b.WriteString(s)
		last = r.End
	}
	b.WriteString(text[last:])
	return b.String(), nil
}

// wholeReference is the single reference that a text consists of.
func wholeReference(text string) (reference, bool) {
	refs, _ := references(text)
	if len(refs) == 1 && refs[0].Start == 0 && refs[0].End == len(text) {
		return refs[0], true
	}
	return reference{}, false
}
