package instruction

import "strings"

// Naming is the index of the slot that is the given text, or -1.
func (in *Instruction) Naming(text string) int {
	low := strings.ToLower(text)
	for i := range in.Slots {
		if in.Slots[i].Low == low {
			return i
		}
	}
	return -1
}

// Mentions says that all words of a text stand in the instruction.
func (in *Instruction) Mentions(text string) bool {
	share, n := in.Share(text)
	return n > 0 && share == 1
}

// Share is the part of a text's words that stand in the instruction, and how many words count.
func (in *Instruction) Share(text string) (share float64, words int) {
	hit := 0
	for _, w := range Tokens(text) {
		if stop[w] {
			continue
		}
		words++
		if in.Has[w] {
			hit++
		}
	}
	if words == 0 {
		return 0, 0
	}
	return float64(hit) / float64(words), words
}

// SlotsIn counts the slots that a text contains. Plain numbers count for nothing: they
// stand everywhere.
func (in *Instruction) SlotsIn(text string) int {
	low := strings.ToLower(text)
	n := 0
	for i := range in.Slots {
		s := &in.Slots[i]
		if s.Kind != Number && !s.Part && Contains(low, s.Low) {
			n++
		}
	}
	return n
}

// Contains says that a text holds a span as whole words. Both are in lower case.
func Contains(text, span string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], span)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(span)
		if (i == 0 || !letter(text[i-1])) && (end == len(text) || !letter(text[end])) {
			return true
		}
		from = i + 1
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }

// Rest is the instruction's text right behind slot i, up to the end of the next two words.
func (in *Instruction) Rest(i int) string {
	rest := in.Text[in.Slots[i].to:]
	words := strings.Fields(rest)
	if len(words) < 2 || strings.ContainsAny(words[0], ".,;") {
		return ""
	}
	return " " + words[0] + " " + strings.TrimRight(words[1], ".,;?!")
}
