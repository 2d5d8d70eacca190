package world

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/postgres"
)

// expand replaces ${name}. A $ that no { follows is itself; $${ is a literal ${.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			b.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		end := strings.IndexByte(text[at:], '}')
		if end < 0 {
			return "", fmt.Errorf("%q: the ${ is not closed", text[at:])
		}
		name := text[at+2 : at+end]
		value, ok := lookup(name)
		if !ok {
			return "", fmt.Errorf("unknown variable ${%s}", name)
		}
		b.WriteString(text[:at] + value)
		text = text[at+end+1:]
	}
}

// outDir is where the built files are inside a world.
const outDir = "/world"

// dbVariables are what commands may use of a database service.
func dbVariables(svc Service, password string) map[string]string {
	pg := svc.Postgres
	port := strconv.Itoa(postgres.Port)
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(pg.Role, password), Host: "127.0.0.1:" + port,
		Path: "/" + pg.Database, RawQuery: "sslmode=disable",
	}
	return map[string]string{
		svc.Name + ".url": u.String(), svc.Name + ".host": "127.0.0.1", svc.Name + ".port": port,
		svc.Name + ".database": pg.Database, svc.Name + ".user": pg.Role, svc.Name + ".password": password,
	}
}

// expandAll replaces variables that were checked when the file was loaded.
func expandAll(texts []string, vars map[string]string) ([]string, error) {
	out := make([]string, len(texts))
	for i, t := range texts {
		got, err := expand(t, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if err != nil {
			return nil, err
		}
		out[i] = got
	}
	return out, nil
}
