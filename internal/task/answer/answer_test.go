package answer

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pommelgym/pommel/internal/task/cell"
)

type verdict struct {
	name string
	want Want
	pass []string
	fail []string
}

// page is what an agent says that reads a whole page out; it holds a 10.
var page = strings.Repeat("Orders, customers and reports of the shop. ", 10) + "Page 10 of the report."

var verdicts = []verdict{
	{"money, nothing", Want{Type: Money, Value: "0", Currency: "USD"},
		[]string{"$0.00", "0 USD", "0"}, []string{"none", "", "0 EUR", "€0"}},
	{"money", Want{Type: Money, Value: "1234.5", Currency: "USD"},
		[]string{"$1,234.50", "1234.5", "USD 1,234.50", "US$1,234.50", "The total is $1,234.50.", "1,234.50 dollars", "$1,234.50 for 3 items"},
		[]string{"1.234,50 EUR", "$123450", "$1,234.51", "€1,234.50", "$1,234.50 or $99", "CA$1,234.50", "-$1,234.50", "1234.5 cents"}},
	{"money, German", Want{Type: Money, Value: "1234.5", Currency: "EUR", Locale: "de-DE"},
		[]string{"1.234,50 €", "1234,5 EUR", "1 234,50 Euro"}, []string{"1,234.50 EUR", "$1.234,50"}},
	{"money owed", Want{Type: Money, Value: "-5", Currency: "USD"}, []string{"-$5.00", "$-5", "\u22125 USD"}, []string{"$5", "5"}},
	{"money, nearly", Want{Type: Money, Value: "9.99", Currency: "USD", Within: "0.01"}, []string{"$10.00", "$9.98"}, []string{"$10.01"}},
	{"integer id", Want{Type: ID, Value: "170"},
		[]string{"000000170", "#170", "170", "Order #170", "The order is 170."}, []string{"1700", "170.5", "1e2", "-170", "A170", "170 and 171", "1,70"}},
	{"text id", Want{Type: Text, Value: "000000170"}, []string{"000000170", " 000000170\n"}, []string{"170", "0000000170", "The id is 000000170"}},
	{"length", Want{Type: Quantity, Value: "21", Unit: "in"},
		[]string{"21 inches", `21"`, "21 in", "21", "21-inch", "1.75 ft", "53.34 cm", "It is 21 inches wide."},
		[]string{"21 feet", "210", "21 kg", "21 cm", "", "twenty", "21 or 22 inches"}},
	{"time", Want{Type: Quantity, Value: "90", Unit: "min"}, []string{"90 minutes", "1.5 hours", "5400 s"}, []string{"90 hours", "1:30"}},
	{"a unit that is only a word", Want{Type: Quantity, Value: "3", Unit: "seats"}, []string{"3 seats", "3"}, []string{"3 kg", "4 seats"}},
	{"percent", Want{Type: Percent, Value: "10"},
		[]string{"10%", "10 percent", "10 %", "10", "10 per cent", "It fell by 10%."}, []string{"0.1%", "0.10", "100%", "$10", "10 or 20%"}},
	{"integer, nothing", Want{Type: Integer, Value: "0"}, []string{"-0", "0", "0.0"}, []string{"none", "", "00 or 1", "zero"}},
	{"integer", Want{Type: Integer, Value: "1000"}, []string{"1e3", "1,000", "1 000", "1000", "+1000", "1\u202f000"}, []string{"1,00,0", "10,00", "1.000", "1000.5", "1000 or so, 2000 at most"}},
	{"number", Want{Type: Number, Value: "-2.5"}, []string{"-2.5", "\u22122.50", "-25e-1", "It is -2.5"}, []string{"2.5", "-2,5", "1-2.5", "-2.5%", "v-2.5.1"}},
	{"date", Want{Type: Date, Value: "2023-10-21"},
		[]string{"Oct 21st, 2023", "2023-10-21", "October 21, 2023", "21 October 2023", "21st of Oct 2023", "Saturday, Oct. 21, 2023", "10/21/2023", "2023/10/21", "It ships on 21-Oct-2023."},
		[]string{"21/10/2023", "Oct 20, 2023", "2023-10-21 or 2023-10-22", "October 2023", "Sunday, Oct 21, 2023", "", "21"}},
	{"date, day first", Want{Type: Date, Value: "2023-10-21", Locale: "en-GB"}, []string{"21/10/2023", "21.10.2023", "21 Oct 2023"}, []string{"10/21/2023"}},
	{"date that does not exist", Want{Type: Date, Value: "2023-03-02"}, []string{"2023-03-02"}, []string{"2023-02-30", "Feb 30, 2023"}},
	{"containing is not equal", Want{Type: Integer, Value: "10"},
		[]string{"The total is 10.", "10", "10 orders", "There are 10 orders."},
		[]string{"There are 110 orders", "10 or 20 or 30", page, "10:30", "A10", "10k", "$10", "10/12", "10-12", "10%", "10th"}},
	{"url", Want{Type: URL, Value: "/report/viewed", Base: "http://shop.test/"},
		[]string{"/report/viewed", "/report/viewed/", "http://shop.test/report/viewed", "http://SHOP.test:80/report/viewed#top", "//report/viewed"},
		[]string{"/report/viewedasdf", "/report/viewed/../other", "/x?next=/report/viewed", "http://other.test/report/viewed", "https://shop.test/report/viewed", "/report/viewed?a=1", "see /report/viewed"}},
	{"url with a query", Want{Type: URL, Value: "/report/viewed?a=1&b=2", Base: "http://shop.test"},
		[]string{"//report/viewed/?b=2&a=1#top", "http://shop.test/report/viewed?b=2&a=1"}, []string{"/report/viewed?a=1", "/report/viewed?a=1&b=2&b=2", "/report/viewed?a=2&b=1"}},
	{"url with a fragment", Want{Type: URL, Value: "/a#two", Base: "http://shop.test"}, []string{"/a#two"}, []string{"/a", "/a#one"}},
	{"choice", Want{Type: Choice, Value: "red", Options: []string{"red", "dark red", "blue"}},
		[]string{"red", "Red.", "It is red"}, []string{"dark red", "It is dark red", "red or blue", "reddish", "", "green"}},
	{"set", Want{Type: Set, Of: Text, Values: []string{"Oslo", "Rome, Italy", "Bern"}},
		[]string{"Bern; Rome, Italy; Oslo", "- Oslo\n- Bern\n- Rome, Italy", `["Rome, Italy", "Oslo", "Bern"]`},
		[]string{"Oslo; Bern", "Oslo; Oslo; Bern; Rome, Italy", "Bern; Rome; Oslo", ""}},
	{"set of words", Want{Type: Set, Of: Text, Values: []string{"a", "b", "c"}, Modes: cell.Modes{CI: true}},
		[]string{"a, b, c", "c, a and b", "A, B, and C.", "a\nb\nc"}, []string{"a, b", "a, b, c, c", "a, b, d"}},
	{"set of numbers", Want{Type: Set, Of: Number, Values: []string{"1000", "2.5"}}, []string{"1,000, 2.5", "2.50 and 1000"}, []string{"1, 000, 2.5", "1000"}},
	{"empty set", Want{Type: Set, Of: Text}, []string{""}, []string{"a"}},
	{"text", Want{Type: Text, Value: "Blue Heron"}, []string{"Blue Heron"}, []string{"blue heron", "Blue  Heron", ""}},
	{"text in any case", Want{Type: Text, Value: "Blue Heron", Modes: cell.Modes{CI: true}}, []string{"blue heron"}, []string{"heron"}},
	{"text that is contained", Want{Type: Text, Value: "heron", Modes: cell.Modes{CI: true, Contains: true}}, []string{"A blue Heron."}, []string{"egret"}},
	{"text by pattern", Want{Type: Text, Value: `^[A-Z]{2}-\d+$`, Modes: cell.Modes{Regex: true}}, []string{"AB-12"}, []string{"xAB-12", "AB-"}},
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, v := range verdicts {
		if err := Check(v.want); err != nil {
			t.Errorf("%s: the expected answer is refused: %v", v.name, err)
		}
		for _, text := range v.pass {
			if ok, why := Match(v.want, text); !ok || why != "" {
				t.Errorf("%s: %q fails (%s), want it to pass", v.name, text, why)
			}
		}
		for _, text := range v.fail {
			ok, why := Match(v.want, text)
			if ok {
				t.Errorf("%s: %q passes, want it to fail", v.name, text)
			} else if why == "" {
				t.Errorf("%s: %q fails without a reason", v.name, text)
			}
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, w := range []Want{
		{Type: Number, Value: "ten"}, {Type: Money, Value: "$10"}, {Type: Integer, Value: "1.5"}, {Type: ID, Value: "A1"},
		{Type: Date, Value: "21/10/2023"}, {Type: Date, Value: "2023-02-30"}, {Type: Choice, Value: "x", Options: []string{"a", "b"}},
		{Type: Set, Of: Number, Values: []string{"1", "x"}}, {Type: Number, Value: "1", Within: "-1"},
	} {
		if Check(w) == nil {
			t.Errorf("%+v is accepted", w)
		}
	}
}

// TestNumbersReadBack: a number written in any usual form is the same number, and no other.
func TestNumbersReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1e15).Draw(t, "n")
		locale := rapid.SampledFrom([]string{"", "de-DE"}).Draw(t, "locale")
		group := rapid.SampledFrom([]string{"", ",", " ", "\u202f"}).Draw(t, "group")
		if locale == "de-DE" && group == "," {
			group = "."
		}
		text := grouped(big.NewInt(n).String(), group)
		sentence := rapid.SampledFrom([]string{"%", "The answer is %.", "% in all", "\"%\""}).Draw(t, "sentence")
		said := strings.Replace(sentence, "%", text, 1)
		w := Want{Type: Integer, Value: big.NewInt(n).String(), Locale: locale}
		if ok, why := Match(w, said); !ok {
			t.Fatalf("%q: %s", said, why)
		}
		w.Value = big.NewInt(n + 1).String()
		if ok, _ := Match(w, said); ok {
			t.Fatalf("%q passes for %s", said, w.Value)
		}
		if ok, _ := Match(w, said+" or 7"); ok {
			t.Fatalf("two numbers pass")
		}
	})
}

func grouped(digits, sep string) string {
	if len(digits) <= 3 {
		return digits
	}
	return grouped(digits[:len(digits)-3], sep) + sep + digits[len(digits)-3:]
}

// FuzzMatch: no text breaks the matching, and what passes for one number does not pass for another.
func FuzzMatch(f *testing.F) {
	for _, v := range verdicts {
		for _, text := range append(append([]string{}, v.pass...), v.fail...) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range verdicts {
			ok, why := Match(v.want, text)
			if !ok && why == "" {
				t.Errorf("%s: %q fails without a reason", v.name, text)
			}
		}
		a, _ := Match(Want{Type: Number, Value: "10"}, text)
		b, _ := Match(Want{Type: Number, Value: "11"}, text)
		if a && b {
			t.Errorf("%q is both 10 and 11", text)
		}
	})
}
