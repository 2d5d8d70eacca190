package feature

import "github.com/pommelgym/pommel/internal/learn/candidate"

// trouble is what an agent can see of something that has not gone as it should.
type trouble uint8

const (
	none    trouble = iota
	refused         // the action could not be carried out
	broken          // a page with next to nothing on it: the server's or the browser's error page
	busy            // the control that was used takes no more clicks
	alert           // an alert that was not there before
	held            // a button does not work, or not yet
	still           // nothing has changed
	numTroubles
)

func (t trouble) String() string {
	return [...]string{"none", "refused", "broken", "busy", "alert", "held", "still"}[t]
}

// few is how many controls the page of a failed request has at most.
const few = 4

// wrong says what is wrong after the last action, the worst first.
func (m *Memory) wrong(alerts map[string]bool) trouble {
	controls, heldButton, pressed := 0, false, false
	for i := range m.page.Nodes {
		n := &m.page.Nodes[i]
		switch {
		case n.Interactive && !n.Disabled:
			controls++
		case n.Role == "button" && n.Disabled:
			heldButton = true
			pressed = pressed || m.last != nil && m.last.Op == candidate.Click && m.lastLabel == n.Role+"|"+n.Name
		}
	}
	fresh := false
	for text := range alerts {
		fresh = fresh || !m.alerts[text]
	}
	switch {
	case m.failed != "":
		return refused
	case controls <= few && !m.dialog:
		return broken
	case pressed:
		return busy
	case fresh:
		return alert
	case heldButton:
		return held
	case m.last != nil && !m.changed:
		return still
	}
	return none
}

// alertsOf are the texts of the page's alerts.
func (m *Memory) alertsOf() map[string]bool {
	var found map[string]bool
	for i := range m.page.Nodes {
		if m.page.Nodes[i].Role != "alert" {
			continue
		}
		if text := m.page.Text(i); text != "" {
			if found == nil {
				found = map[string]bool{}
			}
			found[text] = true
		}
	}
	return found
}

// hurts says that what was done last came to nothing through no fault of its own.
func (t trouble) hurts() bool { return t == broken || t == alert }
