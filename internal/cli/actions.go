package cli

import (
	"fmt"

	"github.com/pommelgym/pommel/internal/action"
)

type actionsCmd struct {
	jsonFlag
	Markdown bool `help:"Print the reference as Markdown."`
}

func (c *actionsCmd) Run(s *State) error {
	switch {
	case c.JSON:
		return s.printJSON(map[string]any{"actions": action.Signatures()})
	case c.Markdown:
		fmt.Fprint(s.Stdout, actionsHead+action.Markdown())
		return nil
	}
	var rows [][]string
	for _, sig := range action.Signatures() {
		rows = append(rows, []string{sig.Usage(), sig.Doc})
	}
	table(s.Stdout, "", rows...)
	return nil
}

const actionsHead = `# Actions

An action is a text with one call or several, on lines of their own or parted by semicolons. Calls look like Python's, with
literal arguments: texts, numbers, lists, True, False, None. Names and signatures are those of BrowserGym's action space, so an agent
written for it can be used as it is; ` + "`selector=`" + `, dialogs, check and uncheck, and ` + "`finish`" + ` are added.

An element is named by its bid, as the observation shows it, or by a selector:

| selector | means |
|---|---|
| ` + "`#submit-order`, `form .total > b`" + ` | CSS; it also finds elements in open shadow roots and in frames |
| ` + "`text=Add to cart`" + ` | the element with this visible text |
| ` + "`role=button[name=\"Save\"]`" + ` | the element with this role and accessible name |

A first argument that does not look like a bid (letters of the frame, then digits: ` + "`12`, `a3`" + `) is taken as a selector, so
` + "`click(\"#submit-order\")`" + ` works; a selector that does look like one (` + "`h1`" + `) needs ` + "`selector=`" + `. A selector that fits several
elements is an error of kind ambiguous that lists their bids.

The calls of one action are made in order; after each the page settles. The first that fails ends the action, and the observation's
last_action_error says what happened (kind, message, which call). A failed action is no error of the API and no end of the episode.

| kind | means | what to do |
|---|---|---|
| not_found | no such element | look at the observation again |
| ambiguous | the selector fits several | use a bid from the message |
| stale | the element of this bid is gone from the page | use a bid of the last observation |
| obscured | something lies over it; the message names it | close or move what covers it |
| disabled | it cannot be used now | do first what enables it |
| not_visible | it has no visible box | open what hides it |
| not_editable | it takes no text | name a field |
| no_such_option | the select has no such option; the message lists them | choose another |
| invalid_value | the field cannot hold this value | mend the value |
| invalid_selector | the selector cannot be read | mend it |
| invalid_action | the text is no action; the message has line and column | mend it |
| dialog_open | a JavaScript dialog waits | dialog_accept or dialog_dismiss |
| no_dialog | there is none to answer | go on |
| blocked_url | the world does not allow that address | stay inside the world |
| navigation_error | the page could not be loaded | go elsewhere, or try again |
| page_crashed | the tab died and was closed | go on in another tab |
| timeout | the page did not get there in time | try again, or something else |

` + "`pommel actions`" + ` prints the list below; with ` + "`--json`" + ` as data, for building tool definitions.

`
