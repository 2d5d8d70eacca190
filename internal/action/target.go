package action

import "strings"

// SelectorName is the argument that names the element of a Target parameter by
// selector: "selector" for "bid", "from_selector" for "from_bid", "to_selector" for "to_bid".
func SelectorName(param string) string {
	return strings.Replace(param, "bid", "selector", 1)
}

// Target is the element that the named parameter points at. ok is false when an
// optional one was left out.
func (c *Call) Target(param string) (t Target, ok bool) {
	if s, has := c.Args[SelectorName(param)].(string); has {
		return Target{Selector: s}, true
	}
	if b, has := c.Args[param].(string); has {
		return Target{Bid: b}, true
	}
	return Target{}, false
}

// Text is the text argument of that name, or "".
func (c *Call) Text(name string) string {
	s, _ := c.Args[name].(string)
	return s
}

// Number is the number argument of that name, or 0.
func (c *Call) Number(name string) float64 {
	n, _ := c.Args[name].(float64)
	return n
}

// Texts is the argument of that name as a list: one text is a list of one.
func (c *Call) Texts(name string) []string {
	switch v := c.Args[name].(type) {
	case string:
		return []string{v}
	case []any:
		out := make([]string, 0, len(v))
		for _, x := range v {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// bidShaped says whether s looks like a bid: frame letters, then digits.
func bidShaped(s string) bool {
	digits := strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
