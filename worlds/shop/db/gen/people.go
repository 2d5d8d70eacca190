package main

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	customerPassword = "open-sesame-25"
	staffPassword    = "behind-the-counter-25"
	// The seed's passwords are known to everybody, so their hashes may be cheap.
	seedIterations = 1000
)

type customer struct {
	id          int
	name, email string
	phone       string
	newsletter  bool
	created     time.Time
	addresses   []address
}

type address struct {
	label, recipient string
	line1, line2     string
	city, postcode   string
	country          string
}

var (
	firstNames = strings.Fields(`Amara Bruno Clara Dario Elena Felix Greta Hugo Ines Jonas Karin Leo Mira Nils Olga
Pavel Quinn Rosa Samir Tessa Umar Vera Wim Xenia Yara Zeno Alma Boris Celia Dunja`)
	lastNames = strings.Fields(`Albrecht Baptiste Castellan Dahlgren Eriksen Fontaine Gallagher Haverford Ishikawa Jankowski
Kowalczyk Lindqvist Marchetti Novak Okafor Petrov Quintana Rasmussen Sandoval Thornbury Ulrich Vandermeer Whitlock
Xanthos Yamada Zielinski Ashworth Bellweather Corrigan Delacroix`)
	streets = strings.Fields(`Maple Orchard Station Mill Chapel Harbour Linden Castle Meadow Bridge Park Quarry
Market Garden Tower Willow`)
	streetKinds = strings.Fields(`Street Road Lane Avenue Square Way`)
	cities      = []string{"Ashford", "Brackenridge", "Carrow", "Dunmore", "Eastleigh", "Fairhaven", "Glenwood", "Hartwell", "Kingsbury", "Lakeside", "Millbrook", "Northgate"}
	labels      = []string{"Home", "Work", "Parents", "Holiday house"}
)

func makeCustomers(r *rand.Rand) ([]customer, error) {
	names := map[string]bool{}
	phones := map[string]bool{}
	var out []customer
	for len(out) < 60 {
		c := customer{id: len(out) + 1}
		c.name = pickUnused(names, func() string {
			return firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))]
		})
		c.email = strings.ToLower(strings.ReplaceAll(c.name, " ", ".")) + "@example.com"
		c.phone = pickUnused(phones, func() string { return fmt.Sprintf("555-%03d-%04d", r.IntN(1000), r.IntN(10000)) })
		c.newsletter = r.IntN(3) == 0
		c.created = today.AddDate(0, 0, -450-r.IntN(300)).Add(-time.Duration(r.IntN(80000)) * time.Second)
		c.addresses = makeAddresses(r, c.name)
		out = append(out, c)
	}
	return out, nil
}

// makeAddresses gives each customer two to four; no two of one customer share street or city.
func makeAddresses(r *rand.Rand, name string) []address {
	lines, towns := map[string]bool{}, map[string]bool{}
	var out []address
	for _, label := range labels[:2+r.IntN(3)] {
		a := address{label: label, recipient: name, country: "United States"}
		a.line1 = pickUnused(lines, func() string {
			return fmt.Sprintf("%d %s %s", 1+r.IntN(180), streets[r.IntN(len(streets))], streetKinds[r.IntN(len(streetKinds))])
		})
		if r.IntN(4) == 0 {
			a.line2 = fmt.Sprintf("Apartment %d", 1+r.IntN(40))
		}
		a.city = pickUnused(towns, func() string { return cities[r.IntN(len(cities))] })
		a.postcode = fmt.Sprintf("%05d", 10000+r.IntN(89999))
		out = append(out, a)
	}
	return out
}

// hash makes the stored form of a password. The salt comes from the e-mail
// address, so that the file is the same each time.
func hash(email, password string) (string, error) {
	salt := sha256.Sum256([]byte("shop seed " + email))
	key, err := pbkdf2.Key(sha256.New, password, salt[:16], seedIterations, 32)
	if err != nil {
		return "", fmt.Errorf("hash the password of %s: %w", email, err)
	}
	return fmt.Sprintf("pbkdf2-sha256$%d$%s$%s", seedIterations, hex.EncodeToString(salt[:16]), hex.EncodeToString(key)), nil
}

func writePeople(w io.Writer, customers []customer) error {
	var people, addresses, team [][]any
	for _, c := range customers {
		h, err := hash(c.email, customerPassword)
		if err != nil {
			return err
		}
		people = append(people, []any{c.id, c.email, h, c.name, c.phone, c.newsletter, c.created})
		for i, a := range c.addresses {
			addresses = append(addresses, []any{len(addresses) + 1, c.id, a.label, a.recipient, a.line1, a.line2, a.city, a.postcode, a.country, i == 0})
		}
	}
	for i, name := range []string{"Ida Storm", "Marek Vale", "Priya Nair"} {
		email := strings.ToLower(strings.Fields(name)[0]) + "@shop.example"
		h, err := hash(email, staffPassword)
		if err != nil {
			return err
		}
		team = append(team, []any{i + 1, email, h, name})
	}
	insert(w, "customers", "id,email,password_hash,name,phone,newsletter,created_at", people)
	insert(w, "addresses", "id,customer_id,label,recipient,line1,line2,city,postcode,country,is_default", addresses)
	insert(w, "staff", "id,email,password_hash,name", team)
	return nil
}
