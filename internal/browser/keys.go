package browser

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Modifier bits as the protocol counts them.
const (
	alt   = 1
	ctrl  = 2
	meta  = 4
	shift = 8
)

// key is one key of a US keyboard.
type key struct {
	key, code, text string
	vk, location    int
	shifted         bool
}

// namedKeys are the keys that have a name, spelled as pages read it.
var namedKeys = map[string]key{
	"Enter": {key: "Enter", code: "Enter", text: "\r", vk: 13}, "NumpadEnter": {key: "Enter", code: "NumpadEnter", text: "\r", vk: 13, location: 3},
	"Tab": {key: "Tab", code: "Tab", vk: 9}, "Escape": {key: "Escape", code: "Escape", vk: 27},
	"Backspace": {key: "Backspace", code: "Backspace", vk: 8}, "Delete": {key: "Delete", code: "Delete", vk: 46},
	"Insert": {key: "Insert", code: "Insert", vk: 45}, "Space": {key: " ", code: "Space", text: " ", vk: 32},
	"ArrowLeft": {key: "ArrowLeft", code: "ArrowLeft", vk: 37}, "ArrowUp": {key: "ArrowUp", code: "ArrowUp", vk: 38},
	"ArrowRight": {key: "ArrowRight", code: "ArrowRight", vk: 39}, "ArrowDown": {key: "ArrowDown", code: "ArrowDown", vk: 40},
	"Home": {key: "Home", code: "Home", vk: 36}, "End": {key: "End", code: "End", vk: 35},
	"PageUp": {key: "PageUp", code: "PageUp", vk: 33}, "PageDown": {key: "PageDown", code: "PageDown", vk: 34},
	"CapsLock": {key: "CapsLock", code: "CapsLock", vk: 20}, "NumLock": {key: "NumLock", code: "NumLock", vk: 144},
	"ScrollLock": {key: "ScrollLock", code: "ScrollLock", vk: 145}, "Pause": {key: "Pause", code: "Pause", vk: 19},
	"PrintScreen": {key: "PrintScreen", code: "PrintScreen", vk: 44}, "ContextMenu": {key: "ContextMenu", code: "ContextMenu", vk: 93},
	"F1": {key: "F1", code: "F1", vk: 112}, "F2": {key: "F2", code: "F2", vk: 113}, "F3": {key: "F3", code: "F3", vk: 114},
	"F4": {key: "F4", code: "F4", vk: 115}, "F5": {key: "F5", code: "F5", vk: 116}, "F6": {key: "F6", code: "F6", vk: 117},
	"F7": {key: "F7", code: "F7", vk: 118}, "F8": {key: "F8", code: "F8", vk: 119}, "F9": {key: "F9", code: "F9", vk: 120},
	"F10": {key: "F10", code: "F10", vk: 121}, "F11": {key: "F11", code: "F11", vk: 122}, "F12": {key: "F12", code: "F12", vk: 123},
}

// keyAliases are other spellings that people use.
var keyAliases = map[string]string{
	"Return": "Enter", "Esc": "Escape", "Del": "Delete", "Left": "ArrowLeft", "Right": "ArrowRight", "Up": "ArrowUp",
	"Down": "ArrowDown", "PgUp": "PageUp", "PgDn": "PageDown", "Spacebar": "Space", "Ctrl": "Control", "Cmd": "Meta",
	"Command": "Meta", "Option": "Alt", "ControlOrMeta": "Control",
}

type modifier struct {
	bit int
	key key
}

var modifierKeys = map[string]modifier{
	"Alt":     {alt, key{key: "Alt", code: "AltLeft", vk: 18, location: 1}},
	"Control": {ctrl, key{key: "Control", code: "ControlLeft", vk: 17, location: 1}},
	"Meta":    {meta, key{key: "Meta", code: "MetaLeft", vk: 91, location: 1}},
	"Shift":   {shift, key{key: "Shift", code: "ShiftLeft", vk: 16, location: 1}},
}

// modifierBits adds up the names that click takes.
func modifierBits(names []string) (bits int, err error) {
	for _, n := range names {
		if a, ok := keyAliases[n]; ok {
			n = a
		}
		m, ok := modifierKeys[n]
		if !ok {
			return 0, fmt.Errorf("%q is not a modifier; there are Alt, Control, ControlOrMeta, Meta, Shift", n)
		}
		bits |= m.bit
	}
	return bits, nil
}

// punctuation maps a character to its key: code, virtual key code, whether it needs Shift.
var punctuation = map[rune]key{
	' ': {code: "Space", vk: 32}, '-': {code: "Minus", vk: 189}, '_': {code: "Minus", vk: 189, shifted: true},
	'=': {code: "Equal", vk: 187}, '+': {code: "Equal", vk: 187, shifted: true}, '[': {code: "BracketLeft", vk: 219},
	'{': {code: "BracketLeft", vk: 219, shifted: true}, ']': {code: "BracketRight", vk: 221}, '}': {code: "BracketRight", vk: 221, shifted: true},
	'\\': {code: "Backslash", vk: 220}, '|': {code: "Backslash", vk: 220, shifted: true}, ';': {code: "Semicolon", vk: 186},
	':': {code: "Semicolon", vk: 186, shifted: true}, '\'': {code: "Quote", vk: 222}, '"': {code: "Quote", vk: 222, shifted: true},
	',': {code: "Comma", vk: 188}, '<': {code: "Comma", vk: 188, shifted: true}, '.': {code: "Period", vk: 190},
	'>': {code: "Period", vk: 190, shifted: true}, '/': {code: "Slash", vk: 191}, '?': {code: "Slash", vk: 191, shifted: true},
	'`': {code: "Backquote", vk: 192}, '~': {code: "Backquote", vk: 192, shifted: true},
	'!': {code: "Digit1", vk: 49, shifted: true}, '@': {code: "Digit2", vk: 50, shifted: true}, '#': {code: "Digit3", vk: 51, shifted: true},
	'$': {code: "Digit4", vk: 52, shifted: true}, '%': {code: "Digit5", vk: 53, shifted: true}, '^': {code: "Digit6", vk: 54, shifted: true},
	'&': {code: "Digit7", vk: 55, shifted: true}, '*': {code: "Digit8", vk: 56, shifted: true}, '(': {code: "Digit9", vk: 57, shifted: true},
	')': {code: "Digit0", vk: 48, shifted: true},
}

// keyForRune is the key that types a character.
func keyForRune(r rune) (key, bool) {
	switch {
	case r == '\n' || r == '\r':
		return namedKeys["Enter"], true
	case r == '\t':
		return namedKeys["Tab"], true
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		u := unicode.ToUpper(r)
		return key{key: string(r), code: "Key" + string(u), text: string(r), vk: int(u), shifted: r == u}, true
	case r >= '0' && r <= '9':
		return key{key: string(r), code: "Digit" + string(r), text: string(r), vk: int(r)}, true
	}
	k, ok := punctuation[r]
	k.key, k.text = string(r), string(r)
	return k, ok
}

// keyNamed is the key of a name, a character or a code such as KeyA.
func keyNamed(name string) (key, bool) {
	if a, ok := keyAliases[name]; ok {
		name = a
	}
	if k, ok := namedKeys[name]; ok {
		return k, true
	}
	if m, ok := modifierKeys[name]; ok {
		return m.key, true
	}
	if rest, ok := strings.CutPrefix(name, "Key"); ok && len(rest) == 1 {
		return keyForRune(unicode.ToLower(rune(rest[0])))
	}
	if rest, ok := strings.CutPrefix(name, "Digit"); ok && len(rest) == 1 {
		return keyForRune(rune(rest[0]))
	}
	if r, n := utf8.DecodeRuneInString(name); n == len(name) && n > 0 && r != utf8.RuneError {
		if k, ok := keyForRune(r); ok {
			return k, true
		}
		return key{key: name, text: name}, true
	}
	return key{}, false
}

// parseCombo reads "Control+Shift+a"; a plus sign itself is "+" or "Shift++".
func parseCombo(combo string) (mods []modifier, k key, err error) {
	rest := combo
	for {
		i := strings.Index(rest, "+")
		if i <= 0 || i == len(rest)-1 {
			break
		}
		name := rest[:i]
		if a, ok := keyAliases[name]; ok {
			name = a
		}
		m, ok := modifierKeys[name]
		if !ok {
			return nil, k, fmt.Errorf("%q in %q is not a modifier; there are Alt, Control, ControlOrMeta, Meta, Shift", rest[:i], combo)
		}
		mods = append(mods, m)
		rest = rest[i+1:]
	}
	k, ok := keyNamed(rest)
	if !ok {
		return nil, k, fmt.Errorf("there is no key %q; write a character or a name such as Enter, Tab, ArrowDown, F5, Control+a", rest)
	}
	for _, m := range mods {
		if m.bit == shift && len(k.key) == 1 {
			if r := rune(k.key[0]); r >= 'a' && r <= 'z' {
				k.key, k.text = string(unicode.ToUpper(r)), string(unicode.ToUpper(r))
			}
		}
	}
	return mods, k, nil
}
