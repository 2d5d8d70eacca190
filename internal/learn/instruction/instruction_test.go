package instruction

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{`Put 3 of "Birch Tote" into your cart.`, []string{"number 3", "quoted Birch Tote"}},
		{`Cancel your order SO-10565. Give "Takes too long" as the reason.`, []string{"code SO-10565", "quoted Takes too long"}},
		{`Sign in to the shop with the e-mail address leo.petrov@example.com and the password open-sesame-25.`, []string{"email leo.petrov@example.com", "code open-sesame-25"}},
		{`Set the price of "Lamp" to $1,024.50.`, []string{"quoted Lamp", "money 1,024.50"}},
		{`It goes to 189 Pilgrim Way, 42930 Oakhaven, Italy.`, []string{"place 189 Pilgrim Way", "number 189", "name Pilgrim Way", "place 42930 Oakhaven", "number 42930", "name Oakhaven", "name Italy"}},
		{`What did I order on 3 March 2025?`, []string{"date 3 March 2025"}},
		{`In the category Desk & Office, find it.`, []string{"name Desk & Office"}},
	} {
		var got []string
		for _, s := range Parse(c.text).Slots {
			got = append(got, s.Kind.String()+" "+s.Text)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-expected +found):\n%s", c.text, d)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	in := Parse(`Set the price of "Lamp" to $1,024.50, from 3 March 2025 on, in the year 2024.`)
	if d := cmp.Diff("1024.50", in.Slots[1].Value); d != "" {
		t.Errorf("what is typed for an amount: %s", d)
	}
	if d := cmp.Diff([]string{"2025-03-03"}, in.Slots[2].Dates); d != "" {
		t.Errorf("a day as date fields take it: %s", d)
	}
	if d := cmp.Diff([]string{"2024-01-01", "2024-12-31"}, in.Slots[3].Dates); d != "" {
		t.Errorf("the days of a year: %s", d)
	}
	if d := cmp.Diff([]string{"price", "set"}, in.Slots[0].Before); d != "" {
		t.Errorf("words before the first slot: %s", d)
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		asks bool
		kind Answer
	}{
		`How many of your orders have the status "Cancelled"? Answer with the number.`:  {true, AnswerCount},
		`What did your order SO-1 cost in total? Answer with the amount in US dollars.`: {true, AnswerMoney},
		`On which date did you place it? Answer with the date.`:                         {true, AnswerDate},
		`What is the tracking code of the order that you placed on 3 March 2025?`:       {true, AnswerCode},
		`Put it into your cart.`: {false, AnswerCode},
	} {
		if in := Parse(text); in.Asks != want.asks || in.Answer != want.kind {
			t.Errorf("%s: asks %v, kind %d; expected %v, %d", text, in.Asks, in.Answer, want.asks, want.kind)
		}
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	in := Parse(`Return 1 of "Birch Tote" from your order SO-10138.`)
	if !in.Mentions("Birch tote") || in.Mentions("Birch Bag") || in.Mentions("") {
		t.Error("Mentions: all words of a text must stand in the instruction")
	}
	if got := in.SlotsIn("SO-10138 | Birch Tote | 1"); got != 2 {
		t.Errorf("a row holds %d slots; expected 2: numbers do not count", got)
	}
	if Contains("so-101380", "so-10138") || !Contains("order so-10138.", "so-10138") {
		t.Error("Contains must find whole words only")
	}
	if in.Naming("birch TOTE") < 0 || in.Naming("Birch") >= 0 {
		t.Error("Naming finds whole slots in any case")
	}
}
