package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// money writes cents the way prices are written: $1,234.50.
func money(cents int) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	whole := strconv.Itoa(cents / 100)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s$%s.%02d", sign, whole, cents%100)
}

// dollars writes cents for an input field: 1234.50.
func dollars(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

var errAmount = errors.New("write an amount like 12.50")

// parseMoney reads an amount as people type it; at most a million dollars.
func parseMoney(s string) (int, error) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "$")
	whole, frac, _ := strings.Cut(strings.ReplaceAll(s, ",", ""), ".")
	if len(frac) > 2 || len(whole) > 7 || whole == "" && frac == "" {
		return 0, errAmount
	}
	for len(frac) < 2 {
		frac += "0"
	}
	for _, d := range whole + frac {
		if d < '0' || d > '9' {
			return 0, errAmount
		}
	}
	cents, err := strconv.Atoi(whole + frac)
	if err != nil || cents > 100_000_000 {
		return 0, errAmount
	}
	return cents, nil
}
