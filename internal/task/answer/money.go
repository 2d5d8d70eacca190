package answer

import (
	"strings"
	"unicode/utf8"
)

// symbols maps a currency sign to the currencies that use it.
var symbols = map[rune][]string{
	'$': {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD", "CLP", "COP", "ARS"},
	'€': {"EUR"},
	'£': {"GBP", "EGP"},
	'¥': {"JPY", "CNY"},
	'₹': {"INR"},
}

// names maps words to the currencies that they may mean.
var names = map[string][]string{
	"dollar": {"USD", "CAD", "AUD", "NZD", "SGD", "HKD"}, "dollars": {"USD", "CAD", "AUD", "NZD", "SGD", "HKD"},
	"euro": {"EUR"}, "euros": {"EUR"}, "pound": {"GBP"}, "pounds": {"GBP"}, "yen": {"JPY"}, "yuan": {"CNY"},
	"rupee": {"INR"}, "rupees": {"INR"}, "franc": {"CHF"}, "francs": {"CHF"}, "us": {"USD"},
}

// codes are the ISO 4217 codes that are recognised as such when they are not the wanted one.
var codes = strings.Fields(`USD EUR GBP JPY CNY INR CHF CAD AUD NZD SGD HKD MXN TWD CLP COP ARS EGP SEK NOK DKK PLN CZK HUF
RON BGN TRY RUB UAH ILS ZAR BRL KRW THB IDR MYR PHP VND AED SAR NGN KES`)

// currencyOf is what a code or a name may mean.
func currencyOf(word string) ([]string, bool) {
	for _, c := range codes {
		if strings.EqualFold(c, word) && (word == strings.ToUpper(word) || c != "TRY" && c != "ALL") {
			return []string{c}, true
		}
	}
	got, ok := names[strings.ToLower(word)]
	return got, ok
}

// moneyMark reads the currency beside a number: a sign, a code or a name, on either side.
func (w Want) moneyMark(c candidate) markKind {
	found := none
	see := func(currencies []string) {
		for _, cur := range currencies {
			if strings.EqualFold(cur, w.Currency) {
				if found == none {
					found = wanted
				}
				return
			}
		}
		found = other
	}
	before := strings.TrimRight(c.before, " \u00a0\u202f")
	after := strings.TrimLeft(c.after, " \u00a0\u202f")
	sign, size := utf8.DecodeLastRuneInString(before)
	if currencies, ok := symbols[sign]; ok {
		see(currencies)
		// US$ 10, CA$ 10
		if country := prevWord(before[:len(before)-size]); len(country) == 2 && strings.HasSuffix(before[:len(before)-size], country) {
			see(countryDollar(country))
		}
	}
	if sign, _ := utf8.DecodeRuneInString(after); symbols[sign] != nil {
		see(symbols[sign])
	}
	for _, word := range []string{prevWord(before), nextWord(after)} {
		if currencies, ok := currencyOf(word); ok {
			see(currencies)
		} else if strings.EqualFold(word, w.Currency) {
			see([]string{w.Currency})
		}
	}
	if next := nextWord(c.after); found == none && (glued(c, false) || strings.EqualFold(next, "cents") || strings.EqualFold(next, "cent")) {
		return other
	}
	return found
}

func countryDollar(country string) []string {
	switch strings.ToUpper(country) {
	case "US":
		return []string{"USD"}
	case "CA":
		return []string{"CAD"}
	case "AU":
		return []string{"AUD"}
	case "NZ":
		return []string{"NZD"}
	case "HK":
		return []string{"HKD"}
	}
	return nil
}
