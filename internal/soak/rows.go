package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pommelgym/pommel/gym"
)

// fingerprint hashes all rows of an environment's database.
type fingerprint struct {
	env   *gym.Env
	query string // once the tables are known
}

// tables lists what must be looked at.
const tables = `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`

// take is the hash as it is now.
func (f *fingerprint) take(ctx context.Context) (string, error) {
	if f.query == "" {
		names, err := f.column(ctx, tables)
		if err != nil || len(names) == 0 {
			return "", fmt.Errorf("list the tables: %d found: %w", len(names), err)
		}
		f.query = hashOf(names)
	}
	sums, err := f.column(ctx, f.query)
	if err != nil || len(sums) != 1 {
		return "", fmt.Errorf("look at all rows: %d sums: %w", len(sums), err)
	}
	return sums[0], nil
}

// hashOf is a query for one hash over the rows of the tables, in whatever order they lie.
func hashOf(tables []string) string {
	var parts []string
	for _, t := range tables {
		parts = append(parts, "SELECT count(*) || ':' || coalesce(sum(hashtextextended(x::text, 0)), 0) AS sum FROM "+t+" x")
	}
	return "SELECT md5(string_agg(sum, ' ' ORDER BY nr)) FROM (SELECT sum, row_number() OVER () AS nr FROM (" + strings.Join(parts, " UNION ALL ") + ") a) b"
}

// column is the first column of a result.
func (f *fingerprint) column(ctx context.Context, query string) ([]string, error) {
	raw, err := f.env.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	var rows struct{ Text [][]*string }
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range rows.Text {
		if len(r) > 0 && r[0] != nil {
			out = append(out, *r[0])
		}
	}
	return out, nil
}
