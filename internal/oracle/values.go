package oracle

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/task"
)

// params makes p: a value for each parameter, a struct for one that is a row.
func params(drawn []task.Drawn) starlark.Value {
	p := starlark.StringDict{}
	for _, d := range drawn {
		if v, single := d.Value(); single && !d.Row {
			p[d.Name] = value(v)
			continue
		}
		row := starlark.StringDict{}
		for _, f := range d.Fields {
			row[f.Name] = value(f.Value)
		}
		p[d.Name] = starlarkstruct.FromStringDict(starlark.String(d.Name), row)
	}
	return starlarkstruct.FromStringDict(starlark.String("p"), p)
}

// value: whole numbers are ints; numbers with a fraction stay text, with all their digits.
func value(v task.Value) starlark.Value {
	switch v.Kind {
	case task.Null:
		return starlark.None
	case task.Bool:
		return starlark.Bool(strings.EqualFold(v.Text, "true"))
	case task.Int:
		if i, ok := new(big.Int).SetString(v.Text, 10); ok {
			return starlark.MakeBigInt(i)
		}
	}
	return starlark.String(v.Text)
}

// render writes a call as the action grammar has it.
func render(name string, args starlark.Tuple, kwargs []starlark.Tuple) (string, error) {
	var parts []string
	for _, a := range args {
		s, err := literal(a)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, s)
	}
	for _, kv := range kwargs {
		s, err := literal(kv[1])
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, string(kv[0].(starlark.String))+"="+s)
	}
	return name + "(" + strings.Join(parts, ", ") + ")", nil
}

// literal writes a value as a literal of Python.
func literal(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int:
		return v.String(), nil
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return "", fmt.Errorf("%s cannot be an argument", v)
		}
		return strconv.FormatFloat(float64(v), 'g', -1, 64), nil
	case starlark.String:
		return action.Quote(string(v)), nil
	case starlark.Tuple, *starlark.List:
		return list(v.(starlark.Iterable))
	case *starlark.Dict:
		return dict(v)
	}
	return "", fmt.Errorf("a %s cannot be an argument", v.Type())
}

func list(v starlark.Iterable) (string, error) {
	var parts []string
	for item := range starlark.Elements(v) {
		s, err := literal(item)
		if err != nil {
			return "", err
		}
		parts = append(parts, s)
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

func dict(d *starlark.Dict) (string, error) {
	var parts []string
	for _, kv := range d.Items() {
		k, err := literal(kv[0])
		if err != nil {
			return "", err
		}
		v, err := literal(kv[1])
		if err != nil {
			return "", err
		}
		parts = append(parts, k+": "+v)
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}
