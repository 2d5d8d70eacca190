package yamlfile

import (
	"strconv"
	"strings"
)

// Pos is a place in a file; both count from 1. The zero Pos is "unknown".
type Pos struct {
	Line, Col int
}

// Kind is the kind of a node.
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String names the kind as an error message does.
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "a whole number", "a number", "a string", "a list", "a mapping"}[k]
}

// Node is one value of a file. Aliases are already replaced by what they stand for.
type Node struct {
	Kind Kind
	Pos  Pos
	// Path is where the node sits, as services[1].ready.
	Path string
	// Text is a scalar as it was written, without quotes.
	Text string
	// Items are the values of a list.
	Items []*Node
	// Entries are the keys of a mapping in the order of the file.
	Entries []Entry

	file *File
}

// Entry is one key of a mapping.
type Entry struct {
	Key    string
	KeyPos Pos
	Value  *Node
}

// Get is the value of a key of a mapping, or nil.
func (n *Node) Get(key string) *Node {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Errorf makes an error that points at the node.
func (n *Node) Errorf(format string, args ...any) *Error {
	return n.file.errorAt(n.Pos, n.Path, format, args...)
}

// Decode reads the node into out, a pointer, as Decode does for a whole file.
func (n *Node) Decode(out any) error {
	return decodeNode(n, out)
}

// Any is the node as plain Go values: map[string]any, []any, string, int64, float64, bool, nil.
func (n *Node) Any() any {
	switch n.Kind {
	case Map:
		m := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			m[e.Key] = e.Value.Any()
		}
		return m
	case List:
		l := make([]any, len(n.Items))
		for i, it := range n.Items {
			l[i] = it.Any()
		}
		return l
	case Bool:
		return strings.EqualFold(n.Text, "true")
	case Int:
		if i, err := parseInt(n.Text); err == nil {
			return i
		}
		return n.Text
	case Float:
		if f, err := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64); err == nil {
			return f
		}
		return n.Text
	case String:
		return n.Text
	}
	return nil
}

// describe says what a node is, for "expected x, got y".
func (n *Node) describe() string {
	switch n.Kind {
	case Null, List, Map:
		return n.Kind.String()
	case String:
		return "the string " + strconv.Quote(shorten(n.Text))
	}
	return n.Kind.String() + " (" + shorten(n.Text) + ")"
}

func shorten(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

func parseInt(text string) (int64, error) {
	return strconv.ParseInt(strings.TrimPrefix(text, "+"), 0, 64)
}

func joinKey(path, key string) string {
	if strings.ContainsAny(key, ".[]\" ") || key == "" {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func joinIndex(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}
