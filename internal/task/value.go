package task

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/yamlfile"
)

// Kind is the kind of a Value.
type Kind = yamlfile.Kind

// The kinds of values.
const (
	Null   = yamlfile.Null
	Bool   = yamlfile.Bool
	Int    = yamlfile.Int
	Float  = yamlfile.Float
	String = yamlfile.String
	List   = yamlfile.List
	Map    = yamlfile.Map
)

// Value is something an author expects: a scalar as it was written, a list or a
// mapping. Text keeps every digit, so 198.00 stays 198.00.
type Value struct {
	Kind   Kind
	Text   string
	Items  []Value
	Fields []Field
}

// Field is one key of a mapping Value.
type Field struct {
	Name  string
	Value Value
}

// TextValue is a string Value.
func TextValue(s string) Value { return Value{Kind: String, Text: s} }

// DecodeYAML reads any YAML value.
func (v *Value) DecodeYAML(n *yamlfile.Node) error {
	*v = valueOf(n)
	return nil
}

func valueOf(n *yamlfile.Node) Value {
	v := Value{Kind: n.Kind, Text: n.Text}
	for _, item := range n.Items {
		v.Items = append(v.Items, valueOf(item))
	}
	for _, e := range n.Entries {
		v.Fields = append(v.Fields, Field{Name: e.Key, Value: valueOf(e.Value)})
	}
	return v
}

// String shows the value as a person would write it.
func (v Value) String() string {
	switch v.Kind {
	case Null:
		return "NULL"
	case List, Map:
		b, err := json.Marshal(v.JSON())
		if err != nil {
			return "?"
		}
		return string(b)
	}
	return v.Text
}

// JSON is the value as encoding/json knows it; numbers keep their digits as json.Number.
func (v Value) JSON() any {
	switch v.Kind {
	case Null:
		return nil
	case Bool:
		return strings.EqualFold(v.Text, "true")
	case Int, Float:
		if n := jsonNumber(v.Text); n != "" {
			return n
		}
		return v.Text
	case List:
		out := make([]any, len(v.Items))
		for i, item := range v.Items {
			out[i] = item.JSON()
		}
		return out
	case Map:
		out := make(map[string]any, len(v.Fields))
		for _, f := range v.Fields {
			out[f.Name] = f.Value.JSON()
		}
		return out
	}
	return v.Text
}

// jsonNumber writes a YAML number as JSON does, or "" when it is none (infinity, 0x10, 1_000).
func jsonNumber(text string) json.Number {
	plain := strings.TrimPrefix(text, "+")
	if json.Valid([]byte(plain)) {
		return json.Number(plain)
	}
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return json.Number(strconv.FormatInt(i, 10))
	}
	return ""
}
