package browser

import "testing"

func TestKeptCompletes(t *testing.T) {
	t.Parallel()
	old := "a\nb\n\nc\nd"
	for _, c := range []struct {
		changed string
		same    unchanged
		want    string // "": an error
	}{
		{"", unchanged{5, 0, 5}, old},
		{"", unchanged{2, 3, 5}, old},
		{"B", unchanged{1, 3, 5}, "a\nB\n\nc\nd"},
		{"x\ny", unchanged{0, 0, 2}, "x\ny"},
		{"", unchanged{1, 1, 3}, "a\n\nd"},
		{"", unchanged{1, 1, 2}, "a\nd"},
		{"z", unchanged{5, 0, 6}, old + "\nz"},
		{"z", unchanged{0, 5, 6}, "z\n" + old},
		{"", unchanged{6, 0, 6}, ""},
		{"", unchanged{0, 6, 6}, ""},
		{"x", unchanged{1, 1, 4}, ""},
		{"x", unchanged{-1, 0, 1}, ""},
	} {
		k := kept{name: 1, text: old, asked: 2}
		got, err := k.take(c.changed, &c.same)
		if (err != nil) != (c.want == "") || got != c.want {
			t.Errorf("%q in %+v: %q, %v; want %q", c.changed, c.same, got, err, c.want)
		}
	}
	k := kept{asked: 1}
	if _, err := k.take("", &unchanged{1, 0, 1}); err == nil {
		t.Error("a text that was never there has been completed")
	}
}
