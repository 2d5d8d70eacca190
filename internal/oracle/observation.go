package oracle

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// observation is an Obs as a value of a script.
type observation struct{ obs Obs }

var _ starlark.HasAttrs = observation{}

func (o observation) String() string {
	return fmt.Sprintf("observation(url = %q, title = %q)", o.obs.URL, o.obs.Title)
}
func (observation) Type() string          { return "observation" }
func (observation) Freeze()               {}
func (observation) Truth() starlark.Bool  { return true }
func (observation) Hash() (uint32, error) { return 0, fmt.Errorf("an observation cannot be a key") }

// AttrNames lists what an observation offers.
func (observation) AttrNames() []string {
	return []string{"done", "elements", "error", "find", "find_all", "text", "title", "url"}
}

// Attr is one of its parts.
func (o observation) Attr(name string) (starlark.Value, error) {
	switch name {
	case "url":
		return starlark.String(o.obs.URL), nil
	case "title":
		return starlark.String(o.obs.Title), nil
	case "text":
		return starlark.String(o.obs.Text), nil
	case "error":
		return starlark.String(o.obs.Error), nil
	case "done":
		return starlark.Bool(o.obs.Done), nil
	case "elements":
		return elementList(o.obs.Elements), nil
	case "find":
		return starlark.NewBuiltin("find", o.find), nil
	case "find_all":
		return starlark.NewBuiltin("find_all", o.findAll), nil
	}
	return nil, nil
}

func element(e Element) starlark.Value {
	var state []starlark.Value
	for _, s := range e.State {
		state = append(state, starlark.String(s))
	}
	return starlarkstruct.FromStringDict(starlark.String("element"), starlark.StringDict{
		"bid": starlark.String(e.Bid), "role": starlark.String(e.Role), "name": starlark.String(e.Name),
		"value": starlark.String(e.Value), "tag": starlark.String(e.Tag), "state": starlark.NewList(state),
	})
}

func elementList(elements []Element) starlark.Value {
	var out []starlark.Value
	for _, e := range elements {
		out = append(out, element(e))
	}
	return starlark.NewList(out)
}

// matching lists the elements that fit find's arguments.
func (o observation) matching(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) ([]Element, error) {
	var role, name, contains, tag string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "role?", &role, "name?", &name, "contains?", &contains, "tag?", &tag); err != nil {
		return nil, err
	}
	var out []Element
	for _, e := range o.obs.Elements {
		if (role == "" || e.Role == role) && (name == "" || e.Name == name) && (tag == "" || e.Tag == tag) &&
			(contains == "" || strings.Contains(strings.ToLower(e.Name), strings.ToLower(contains))) {
			out = append(out, e)
		}
	}
	return out, nil
}

// find gives the first element that fits, or None.
func (o observation) find(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	found, err := o.matching(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return starlark.None, nil
	}
	return element(found[0]), nil
}

func (o observation) findAll(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	found, err := o.matching(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return elementList(found), nil
}
