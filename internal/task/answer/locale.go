package answer

import "strings"

// language is the first part of a locale.
func language(locale string) string {
	lang, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(locale, "_", "-")), "-")
	return lang
}

// decimalComma says whether a locale writes 1.234,50.
func decimalComma(locale string) bool {
	switch strings.ToLower(locale) {
	case "de-ch", "de-li", "it-ch", "es-mx", "es-us", "es-pr":
		return false
	}
	switch language(locale) {
	case "de", "fr", "es", "it", "nl", "pt", "pl", "ru", "uk", "tr", "sv", "da", "nb", "nn", "no", "fi", "cs", "sk",
		"hu", "ro", "bg", "hr", "sl", "sr", "el", "lt", "lv", "et", "id", "vi", "ca", "eu", "gl", "is":
		return true
	}
	return false
}

// order is the order of day, month and year in dates of digits.
type order int

const (
	monthFirst order = iota
	dayFirst
	yearFirst
)

func dateOrder(locale string) order {
	switch strings.ToLower(strings.ReplaceAll(locale, "_", "-")) {
	case "", "en", "en-us", "en-ph":
		return monthFirst
	case "en-ca", "fr-ca", "en-za":
		return yearFirst
	}
	switch language(locale) {
	case "zh", "ja", "ko", "hu", "lt", "mn", "sv":
		return yearFirst
	}
	return dayFirst
}
