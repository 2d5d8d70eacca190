package dashboard

import (
	"strings"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// maxTarget bounds the name of an element, in bytes.
const maxTarget = 80

// target is what the first call of an action was about, in the words of the text that the
// agent acted on: a bid says nothing to a person. "" is not known.
func target(text, seen string) string {
	if seen == "" {
		return ""
	}
	calls, err := action.Parse(text)
	if err != nil || len(calls) == 0 {
		return ""
	}
	t, ok := calls[0].Target("bid")
	if !ok || t.Bid == "" {
		return ""
	}
	mark := "[" + t.Bid + "] "
	for line := range strings.Lines(seen) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
			cut := false
			if name = wire.Cut(name, maxTarget, &cut); cut {
				name += "…"
			}
			return name
		}
	}
	return ""
}
