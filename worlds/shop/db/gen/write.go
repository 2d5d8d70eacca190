package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// rowsPerInsert keeps single statements small enough to read in an error message.
const rowsPerInsert = 200

// insert writes multi-row INSERT statements; columns is the list between the brackets.
func insert(w io.Writer, table, columns string, rows [][]any) {
	for i, row := range rows {
		switch i % rowsPerInsert {
		case 0:
			fmt.Fprintf(w, "INSERT INTO %s (%s) VALUES\n(", table, columns)
		default:
			fmt.Fprint(w, ",\n(")
		}
		for j, v := range row {
			if j > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprint(w, literal(v))
		}
		fmt.Fprint(w, ")")
		if (i+1)%rowsPerInsert == 0 || i == len(rows)-1 {
			fmt.Fprint(w, ";\n")
		}
	}
}

// null is the SQL NULL among a row's values.
type null struct{}

func literal(v any) string {
	switch v := v.(type) {
	case null:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case time.Time:
		if v.IsZero() {
			return "NULL"
		}
		return "'" + v.UTC().Format("2006-01-02 15:04:05Z") + "'"
	case bool:
		if v {
			return "true"
		}
		return "false"
	default:
		return fmt.Sprint(v)
	}
}

// writeSequences makes each identity column go on after the rows of the seed.
func writeSequences(w io.Writer) {
	for _, t := range []string{
		"categories", "products", "variants", "customers", "staff", "addresses", "coupons",
		"orders", "order_items", "payments", "returns", "reviews",
	} {
		fmt.Fprintf(w, "SELECT setval(pg_get_serial_sequence('%s', 'id'), (SELECT max(id) FROM %s));\n", t, t)
	}
	fmt.Fprintln(w, "ANALYZE categories, products, variants, customers, addresses, orders, order_items, payments, reviews;")
}
