package cell

import (
	"bytes"
	"encoding/json"
)

func equalJSON(got string, want Want, m Modes) (bool, error) {
	g, ok := parseJSON(got)
	if !ok {
		return false, nil
	}
	w := want.Doc
	if !want.Structured {
		// Text that is JSON is taken as JSON, any other as a JSON string.
		if w, ok = parseJSON(want.Text); !ok {
			w = want.Text
		}
	}
	return sameJSON(g, w, m)
}

func parseJSON(text string) (any, bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// sameJSON compares by value: the order of keys is nothing, that of lists counts unless
// they are declared sets.
func sameJSON(a, b any, m Modes) (bool, error) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for k, v := range x {
			other, ok := y[k]
			if !ok {
				return false, nil
			}
			if same, err := sameJSON(v, other, m); !same {
				return false, err
			}
		}
		return true, nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return sameList(x, y, m)
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false, nil
		}
		n, ok1 := ParseDecimal(x.String())
		k, ok2 := ParseDecimal(y.String())
		return ok1 && ok2 && n.Cmp(k) == 0, nil
	case string:
		y, ok := b.(string)
		if !ok {
			return false, nil
		}
		return equalText(x, y, m)
	}
	return a == b, nil
}

func sameList(x, y []any, m Modes) (bool, error) {
	if m.Set {
		return Bag(len(x), func(i, k int) (bool, error) { return sameJSON(x[i], y[k], m) })
	}
	for i := range x {
		if same, err := sameJSON(x[i], y[i], m); !same {
			return false, err
		}
	}
	return true, nil
}

func fromJSON(v any) Want {
	switch x := v.(type) {
	case nil:
		return Want{Null: true}
	case string:
		return Want{Text: x}
	case json.Number:
		return Want{Text: x.String()}
	case bool:
		if x {
			return Want{Text: "true"}
		}
		return Want{Text: "false"}
	}
	return Want{Doc: v, Structured: true}
}
