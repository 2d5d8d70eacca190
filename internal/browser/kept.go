package browser

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// kept is the text of the last observation of a tab. The page has kept it too and sends
// only the lines that have changed: five processes and threads copy, encode and decode what
// goes through the protocol, and from step to step most of it is the same.
//
// A text is known by a number that no other observation of this browser has. So it does not
// matter what became of the page meanwhile, nor whether it was put back to an earlier state:
// a page that does not have the very text of that number sends all of its own.
type kept struct {
	name  int64 // 0: none
	text  string
	asked int64 // the name of the text that is being asked for
}

// unchanged says how many lines at the beginning and at the end of a text are those of the
// text before, and how many it has.
type unchanged struct {
	Top   int `json:"top"`
	End   int `json:"end"`
	Lines int `json:"lines"`
}

func (k *kept) next(b *Browser) *kept {
	b.looks++
	k.asked = b.looks
	return k
}

// option is how the page is told.
func (k *kept) option() string {
	if k == nil {
		return ""
	}
	return ",have:" + strconv.FormatInt(k.name, 10) + ",now:" + strconv.FormatInt(k.asked, 10)
}

// take completes a text, and keeps it.
func (k *kept) take(text string, same *unchanged) (string, error) {
	if k == nil {
		return text, nil
	}
	before := *k
	k.name, k.text = 0, ""
	if same != nil {
		var err error
		if text, err = before.complete(text, *same); err != nil {
			return "", err
		}
	}
	k.name, k.text = k.asked, text
	return text, nil
}

var errNotKept = errors.New("the observer left out lines that are not known")

// complete puts changed lines between the ends of the text before.
func (k *kept) complete(changed string, same unchanged) (string, error) {
	middle := same.Lines - same.Top - same.End
	if k.name == 0 || same.Top < 0 || same.End < 0 || middle < 0 {
		return "", errNotKept
	}
	var parts []string
	if same.Top > 0 {
		n := endOf(k.text, same.Top)
		if n < 0 {
			return "", errNotKept
		}
		parts = append(parts, k.text[:n])
	}
	if middle > 0 {
		parts = append(parts, changed)
	}
	if same.End > 0 {
		n := startOf(k.text, same.End)
		if n < 0 {
			return "", errNotKept
		}
		parts = append(parts, k.text[n:])
	}
	text := strings.Join(parts, "\n")
	if n := strings.Count(text, "\n") + 1; n != same.Lines {
		return "", fmt.Errorf("the observer promised %d lines, and there are %d", same.Lines, n)
	}
	return text, nil
}

// endOf is where the first n lines of a text end, -1 if it has fewer.
func endOf(text string, n int) int {
	at := -1
	for range n {
		if at == len(text) {
			return -1
		}
		i := strings.IndexByte(text[at+1:], '\n')
		if i < 0 {
			at = len(text)
		} else {
			at += 1 + i
		}
	}
	return at
}

// startOf is where the last n lines of a text start, -1 if it has fewer.
func startOf(text string, n int) int {
	at := len(text) + 1
	for range n {
		if at == 0 {
			return -1
		}
		at = strings.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}
