package browser

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodePage(t *testing.T) {
	t.Parallel()
	raw := strings.Join([]string{
		`{"url":"http://x/","title":"T","focused":"2","truncated":true,"elements":2}`,
		"1\tlink\ta \\\\ b\\tc\t\t\t-3\t4\t50\t6\ta\t3",
		"a2\ttextbox\tName\tl1\\nl2\tfocused,required\t0\t0\t0\t0\tinput\t1",
		"RootWebArea 'T'",
		"\t[1] link 'a'",
	}, "\n")
	got := Observation{Elements: []Element{{Bid: "left over"}}}
	if _, err := decodePage(raw, nil, &got); err != nil {
		t.Fatal(err)
	}
	want := Observation{
		URL: "http://x/", Title: "T", FocusedBid: "2", Truncated: true,
		Text: "RootWebArea 'T'\n\t[1] link 'a'",
		Elements: []Element{
			{Bid: "1", Role: "link", Name: "a \\ b\tc", Box: [4]int{-3, 4, 50, 6}, Tag: "a", Interactive: true, InViewport: true},
			{Bid: "a2", Role: "textbox", Name: "Name", Value: "l1\nl2", State: []string{"focused", "required"}, Tag: "input", Interactive: true},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decodePage: -want +got\n%s", d)
	}
}

func TestDecodePageRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	head := `{"elements":1}` + "\n"
	for name, raw := range map[string]string{
		"empty":           "",
		"no head":         "text\nmore",
		"too few lines":   `{"elements":3}` + "\n" + "1\tlink\t\t\t\t0\t0\t0\t0\ta\t0\n",
		"too few fields":  head + "1\tlink\n",
		"too many fields": head + "1\tlink\t\t\t\t0\t0\t0\t0\ta\t0\tx\n",
		"box":             head + "1\tlink\t\t\t\tx\t0\t0\t0\ta\t0\n",
		"flags":           head + "1\tlink\t\t\t\t0\t0\t0\t0\ta\tx\n",
	} {
		if _, err := decodePage(raw, nil, &Observation{}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// scripted answers evaluations by the start of their expression.
type scripted map[string]string

func (s scripted) evalAgent(_ context.Context, expr string, out any) error {
	for prefix, v := range s {
		if strings.HasPrefix(expr, prefix) {
			*(out.(*string)) = v
			return nil
		}
	}
	return context.DeadlineExceeded
}

func TestReadPageAsksOnlyForWhatIsWanted(t *testing.T) {
	t.Parallel()
	page := `{"url":"u","title":"t","focused":"","truncated":false,"elements":0}` + "\nRootWebArea 't'"
	var o Observation
	err := readPage(t.Context(), scripted{"P.observe({max:262144,elements:false": page}, View{}, &o)
	if err != nil || o.Text != "RootWebArea 't'" || o.HTML != "" {
		t.Errorf("readPage gave %+v, %v", o, err)
	}
	w := scripted{"P.observe({max:100,elements:true": page, "P.html(": "<html></html>"}
	if err := readPage(t.Context(), w, View{Elements: true, HTML: true, MaxText: 100}, &o); err != nil || o.HTML != "<html></html>" {
		t.Errorf("readPage with HTML gave %+v, %v", o, err)
	}
}

func FuzzDecodePage(f *testing.F) {
	f.Add(`{"url":"u","title":"t","focused":"","truncated":false,"elements":1}` + "\n1\tlink\tn\tv\ts\t1\t2\t3\t4\ta\t3\nRootWebArea 't'")
	f.Add(`{"elements":-1}` + "\n")
	f.Add(`{"elements":1000000000}` + "\n")
	f.Fuzz(func(t *testing.T, raw string) {
		var o Observation
		if _, err := decodePage(raw, nil, &o); err != nil {
			return
		}
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("an observation that was read does not encode: %v", err)
		}
	})
}
