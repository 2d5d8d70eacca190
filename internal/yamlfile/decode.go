package yamlfile

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Decoder is a type that reads itself from a node, for values with several forms.
type Decoder interface {
	DecodeYAML(n *Node) error
}

type structField struct {
	index    []int
	required bool
}

func decodeNode(n *Node, out any) error {
	v := reflect.ValueOf(out)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("decode yaml: need a pointer, got %T", out)
	}
	var d decoder
	d.value(n, v.Elem())
	return d.errs.orNil()
}

type decoder struct {
	errs Errors
}

func (d *decoder) fail(n *Node, format string, args ...any) {
	d.errs = append(d.errs, n.Errorf(format, args...))
}

func (d *decoder) mismatch(n *Node, want string) {
	if n.Kind == Null {
		d.fail(n, "expected %s, but no value is given", want)
		return
	}
	d.fail(n, "expected %s, got %s", want, n.describe())
}

// addErr takes what a custom type returned: a placed error as it is, any other at the node.
func (d *decoder) addErr(n *Node, err error) {
	var many Errors
	var one *Error
	switch {
	case errors.As(err, &many):
		d.errs = append(d.errs, many...)
	case errors.As(err, &one):
		d.errs = append(d.errs, one)
	default:
		d.fail(n, "%v", err)
	}
}

// custom lets types that read themselves do so.
func (d *decoder) custom(n *Node, v reflect.Value) bool {
	if !v.CanAddr() {
		return false
	}
	switch t := v.Addr().Interface().(type) {
	case Decoder:
		if err := t.DecodeYAML(n); err != nil {
			d.addErr(n, err)
		}
	case *Node:
		*t = *n
	case *time.Duration:
		d.duration(n, t)
	case *time.Time:
		d.time(n, t)
	case encoding.TextUnmarshaler:
		if n.Kind == Null || n.Kind == List || n.Kind == Map {
			d.mismatch(n, "a string")
		} else if err := t.UnmarshalText([]byte(n.Text)); err != nil {
			d.fail(n, "%v", err)
		}
	default:
		return false
	}
	return true
}

func (d *decoder) value(n *Node, v reflect.Value) {
	if d.custom(n, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.Kind == Null {
			d.mismatch(n, "a value")
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem())
	case reflect.Struct:
		d.structure(n, v)
	case reflect.Map:
		d.mapping(n, v)
	case reflect.Slice, reflect.Array:
		d.list(n, v)
	case reflect.Interface:
		if x := n.Any(); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) scalar(n *Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		// A number or boolean is taken as it was written: PORT: 8080 is the text "8080".
		if n.Kind == Null || n.Kind == List || n.Kind == Map {
			d.mismatch(n, "a string")
			return
		}
		v.SetString(n.Text)
	case reflect.Bool:
		if n.Kind != Bool {
			d.mismatch(n, "true or false")
			return
		}
		v.SetBool(strings.EqualFold(n.Text, "true"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := parseInt(n.Text)
		if n.Kind != Int || err != nil || v.OverflowInt(i) {
			d.mismatch(n, "a whole number")
			return
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, err := strconv.ParseUint(n.Text, 0, 64)
		if n.Kind != Int || err != nil || v.OverflowUint(i) {
			d.mismatch(n, "a whole number of at least 0")
			return
		}
		v.SetUint(i)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64)
		if (n.Kind != Int && n.Kind != Float) || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.mismatch(n, "a number")
			return
		}
		v.SetFloat(f)
	default:
		d.fail(n, "cannot be read into a %s", v.Type())
	}
}

func (d *decoder) duration(n *Node, out *time.Duration) {
	got, err := time.ParseDuration(n.Text)
	if n.Kind != String || err != nil {
		d.mismatch(n, "a duration such as 10s, 500ms or 1m30s")
		return
	}
	*out = got
}

func (d *decoder) time(n *Node, out *time.Time) {
	got, err := time.Parse(time.RFC3339Nano, n.Text)
	if err != nil {
		d.mismatch(n, "an instant such as 2025-03-10T09:00:00Z")
		return
	}
	*out = got
}

func (d *decoder) structure(n *Node, v reflect.Value) {
	if n.Kind != Map {
		d.mismatch(n, "a mapping with "+listKeys(fieldNames(v.Type())))
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range n.Entries {
		f, ok := fields[e.Key]
		if !ok {
			d.unknownKey(n, e, fieldNames(v.Type()))
			continue
		}
		d.value(e.Value, v.FieldByIndex(f.index))
	}
	for _, name := range fieldNames(v.Type()) {
		if fields[name].required && n.Get(name) == nil {
			err := n.Errorf("the key %q is missing", name)
			err.Path = joinKey(n.Path, name)
			d.errs = append(d.errs, err)
		}
	}
}

func (d *decoder) unknownKey(n *Node, e Entry, known []string) {
	err := n.file.errorAt(e.KeyPos, joinKey(n.Path, e.Key), "unknown key %q", e.Key)
	if s := suggest(e.Key, known); s != "" {
		err.Hint = fmt.Sprintf("did you mean %q?", s)
	} else {
		err.Hint = "known keys here: " + listKeys(known)
	}
	d.errs = append(d.errs, err)
}

func (d *decoder) mapping(n *Node, v reflect.Value) {
	t := v.Type()
	if n.Kind != Map || t.Key().Kind() != reflect.String {
		d.mismatch(n, "a mapping")
		return
	}
	m := reflect.MakeMapWithSize(t, len(n.Entries))
	for _, e := range n.Entries {
		val := reflect.New(t.Elem()).Elem()
		d.value(e.Value, val)
		m.SetMapIndex(reflect.ValueOf(e.Key).Convert(t.Key()), val)
	}
	v.Set(m)
}

func (d *decoder) list(n *Node, v reflect.Value) {
	if n.Kind != List {
		d.mismatch(n, "a list")
		return
	}
	if v.Kind() == reflect.Array {
		if len(n.Items) != v.Len() {
			d.fail(n, "expected a list of %d values, got %d", v.Len(), len(n.Items))
			return
		}
	} else {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	}
	for i, item := range n.Items {
		d.value(item, v.Index(i))
	}
}

// fieldsOf maps the keys of a struct, embedded ones included, to its fields.
func fieldsOf(t reflect.Type) map[string]structField {
	out := map[string]structField{}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || f.Anonymous || name == "" || name == "-" {
			continue
		}
		out[name] = structField{index: f.Index, required: strings.Contains(opts, "required")}
	}
	return out
}

// fieldNames lists the keys of a struct in the order of its fields.
func fieldNames(t reflect.Type) []string {
	var out []string
	known := fieldsOf(t)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if _, ok := known[name]; ok && !f.Anonymous {
			out = append(out, name)
		}
	}
	return out
}
