package action

// Kind is the type of a parameter.
type Kind string

// The types of parameters.
const (
	Text     Kind = "text"
	Number   Kind = "number"
	Bool     Kind = "bool"
	Texts    Kind = "text or list of texts"
	AnyValue Kind = "any"
)

// Param is one parameter of an action.
type Param struct {
	Name string
	Kind Kind
	// Optional parameters without a Default are absent from Call.Args when not given.
	Optional bool
	Default  any
	// Target marks a parameter that names an element: a bid, or selector= in its place.
	Target bool
	// OneOf lists the only values, if it is not empty. For Texts it holds for each.
	OneOf []string
	Doc   string
}

// Signature describes one action.
type Signature struct {
	Name   string
	Group  string // bid, coord, nav, tab, dialog, chat, end
	Params []Param
	Doc    string
}

var (
	buttons   = []string{"left", "middle", "right"}
	modifiers = []string{"Alt", "Control", "ControlOrMeta", "Meta", "Shift"}
)

func target(name, doc string) Param { return Param{Name: name, Kind: Text, Target: true, Doc: doc} }
func need(name string, k Kind, doc string) Param {
	return Param{Name: name, Kind: k, Doc: doc}
}

func opt(name string, k Kind, def any, doc string) Param {
	return Param{Name: name, Kind: k, Optional: true, Default: def, Doc: doc}
}

func oneOf(p Param, values []string) Param { p.OneOf = values; return p }

var (
	theElement = target("bid", "the element, by bid")
	theButton  = oneOf(opt("button", Text, "left", "mouse button"), buttons)
	theKeys    = oneOf(opt("modifiers", Texts, []any{}, "keys held meanwhile"), modifiers)
	theX       = need("x", Number, "CSS pixels from the left of the viewport")
	theY       = need("y", Number, "CSS pixels from the top of the viewport")
)

// signatures are all actions, in the order of the documentation.
var signatures = []Signature{
	{"click", "bid", []Param{theElement, theButton, theKeys}, "Click an element, as a user would: it is scrolled into view and must be the topmost thing at its point."},
	{"dblclick", "bid", []Param{theElement, theButton, theKeys}, "Double-click an element."},
	{"hover", "bid", []Param{theElement}, "Move the mouse over an element."},
	{"fill", "bid", []Param{theElement, need("value", Text, "the new text; dates as 2024-02-09, times as 18:55"), opt("enable_autocomplete_menu", Bool, false, "accepted for compatibility; fill types through trusted input either way")}, "Replace the text of a field or an editable element."},
	{"clear", "bid", []Param{theElement}, "Empty a field."},
	{"focus", "bid", []Param{theElement}, "Give an element the keyboard focus."},
	{"press", "bid", []Param{theElement, need("key_comb", Text, "a key or a combination such as Control+A")}, "Focus an element and press a key."},
	{"check", "bid", []Param{theElement}, "Make a checkbox or radio button checked."},
	{"uncheck", "bid", []Param{theElement}, "Make a checkbox unchecked."},
	{"select_option", "bid", []Param{theElement, need("options", Texts, "labels or values")}, "Choose exactly these options of a select."},
	{"drag_and_drop", "bid", []Param{target("from_bid", "what to drag, by bid"), target("to_bid", "where to drop it, by bid")}, "Drag one element onto another."},
	{"upload_file", "bid", []Param{theElement, need("file", Texts, "names of files in the world's upload folder")}, "Choose files in a file field."},
	{"scroll", "bid", []Param{opt("delta_x", Number, 0.0, "pixels to the right"), opt("delta_y", Number, 0.0, "pixels down"), {Name: "bid", Kind: Text, Target: true, Optional: true, Doc: "what to scroll: the nearest scrollable ancestor of this element; without it, what lies under the middle of the view"}}, "Scroll the page or the pane that holds an element; a note says how far it moved."},

	{"mouse_move", "coord", []Param{theX, theY}, "Move the mouse."},
	{"mouse_click", "coord", []Param{theX, theY, theButton}, "Click at a point."},
	{"mouse_dblclick", "coord", []Param{theX, theY, theButton}, "Double-click at a point."},
	{"mouse_down", "coord", []Param{theX, theY, theButton}, "Press a mouse button at a point."},
	{"mouse_up", "coord", []Param{theX, theY, theButton}, "Release a mouse button at a point."},
	{"mouse_drag_and_drop", "coord", []Param{need("from_x", Number, "start"), need("from_y", Number, "start"), need("to_x", Number, "end"), need("to_y", Number, "end")}, "Drag from one point to another."},
	{"mouse_upload_file", "coord", []Param{theX, theY, need("file", Texts, "names of files in the world's upload folder")}, "Choose files in the file field at a point."},
	{"scroll_at", "coord", []Param{theX, theY, need("delta_x", Number, "pixels to the right"), need("delta_y", Number, "pixels down")}, "Turn the mouse wheel at a point."},
	{"keyboard_press", "coord", []Param{need("key", Text, "a key or a combination such as Control+A")}, "Press and release a key."},
	{"keyboard_down", "coord", []Param{need("key", Text, "a key")}, "Press a key and hold it."},
	{"keyboard_up", "coord", []Param{need("key", Text, "a key")}, "Release a key."},
	{"keyboard_type", "coord", []Param{need("text", Text, "what to type")}, "Type a text key by key into what has the focus."},
	{"keyboard_insert_text", "coord", []Param{need("text", Text, "what to insert")}, "Insert a text at once into what has the focus."},

	{"goto", "nav", []Param{need("url", Text, "a URL of the world, absolute or relative to the page")}, "Go to a page."},
	{"go_back", "nav", nil, "Go back in the tab's history."},
	{"go_forward", "nav", nil, "Go forward in the tab's history."},
	{"new_tab", "tab", nil, "Open an empty tab and make it the active one."},
	{"tab_close", "tab", nil, "Close the active tab."},
	{"tab_focus", "tab", []Param{need("index", Number, "the tab's number in the observation")}, "Make another tab the active one."},

	{"dialog_accept", "dialog", []Param{opt("text", Text, nil, "the answer to a prompt")}, "Accept the open dialog."},
	{"dialog_dismiss", "dialog", nil, "Dismiss the open dialog."},

	{"noop", "end", []Param{opt("wait_ms", Number, 1000.0, "milliseconds of page time; they cost no real time")}, "Do nothing for some page time."},
	{"wait", "end", []Param{opt("ms", Number, 1000.0, "milliseconds of page time; they cost no real time")}, "The same as noop."},
	{"send_msg_to_user", "chat", []Param{need("text", Text, "what to say")}, "Say something to the user. It is recorded, and does not end the episode."},
	{"report_infeasible", "end", []Param{need("reason", Text, "why it cannot be done")}, "Say that the task cannot be done, which ends the episode."},
	{"finish", "end", []Param{opt("answer", AnyValue, nil, "the answer, if the task asks for one")}, "End the episode."},
}

var byName = func() map[string]*Signature {
	m := make(map[string]*Signature, len(signatures))
	for i := range signatures {
		m[signatures[i].Name] = &signatures[i]
	}
	return m
}()

// Signatures lists all actions. The result must not be changed.
func Signatures() []Signature { return signatures }

// SignatureOf is the signature of an action.
func SignatureOf(name string) (Signature, bool) {
	s, ok := byName[name]
	if !ok {
		return Signature{}, false
	}
	return *s, true
}
