package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/fault"
)

// runSQLFile runs a script in one go. PostgreSQL itself splits it into statements, so
// every kind of quoting works; Pommel's own splitting only finds the line of an error.
func runSQLFile(ctx context.Context, c *pgx.Conn, f SQLFile) error {
	if strings.TrimSpace(f.Content) == "" {
		return nil
	}
	done := 0
	results := c.PgConn().Exec(ctx, f.Content)
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err != nil {
			break
		}
		done++
	}
	err := results.Close()
	if err == nil {
		return nil
	}
	return sqlFileError(f, done, err)
}

var copyFromStdin = regexp.MustCompile(`(?i)\bCOPY\b[^;]*\bFROM\s+STDIN\b`)

func sqlFileError(f SQLFile, done int, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("run %s: %w", f.Name, err)
	}
	offset := statementStart(f.Content, done)
	if pg.Position > 0 {
		// PostgreSQL counts characters from 1, Go bytes from 0.
		offset = byteOffset(f.Content, int(pg.Position)-1)
	}
	line, col := 1+strings.Count(f.Content[:offset], "\n"), offset-strings.LastIndexByte(f.Content[:offset], '\n')
	e := fault.New(fault.InvalidArgument, "%s:%d:%d: %s (SQLSTATE %s)", f.Name, line, col, pg.Message, pg.Code)
	hint := strings.TrimSpace(strings.Join([]string{pg.Detail, pg.Hint}, " "))
	if at := f.Content[offset:]; strings.HasPrefix(at, `\`) {
		hint = `commands that start with \ belong to psql; write plain SQL`
	} else if pg.Code == "42601" && copyFromStdin.MatchString(f.Content[:offset]) {
		hint = "COPY FROM stdin with its data in the script belongs to psql; write INSERTs (pg_dump --inserts)"
	} else if pg.Where != "" && hint == "" {
		hint = pg.Where
	}
	if hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

func byteOffset(s string, runes int) int {
	for i := range s {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// statementStart is where statement number n (from 0) begins.
func statementStart(sql string, n int) int {
	pos := 0
	for {
		pos = skipBlank(sql, pos)
		if pos < len(sql) && sql[pos] == ';' {
			pos++ // a lone semicolon is no statement
			continue
		}
		if n == 0 || pos >= len(sql) {
			return pos
		}
		for pos < len(sql) && sql[pos] != ';' {
			pos = skipToken(sql, pos)
		}
		n--
	}
}

// skipBlank passes white space and comments.
func skipBlank(s string, i int) int {
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f", s[i]) >= 0:
			i++
		case strings.HasPrefix(s[i:], "--"), strings.HasPrefix(s[i:], "/*"):
			i = skipToken(s, i)
		default:
			return i
		}
	}
	return i
}

// skipToken passes one quoted text, comment or single character.
func skipToken(s string, i int) int {
	rest := s[i:]
	switch {
	case strings.HasPrefix(rest, "--"):
		return i + indexEnd(rest, "\n")
	case strings.HasPrefix(rest, "/*"):
		return skipBlockComment(s, i)
	case rest[0] == '\'':
		escapes := i > 0 && (s[i-1] == 'e' || s[i-1] == 'E')
		return skipQuoted(s, i, escapes)
	case rest[0] == '"':
		return skipQuoted(s, i, false)
	case rest[0] == '$':
		if tag := dollarTag(rest); tag != "" {
			return i + len(tag) + indexEnd(rest[len(tag):], tag)
		}
	}
	return i + 1
}

func indexEnd(s, end string) int {
	if at := strings.Index(s, end); at >= 0 {
		return at + len(end)
	}
	return len(s)
}

func skipQuoted(s string, i int, escapes bool) int {
	q := s[i]
	for i++; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return len(s)
}

func skipBlockComment(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth, i = depth+1, i+2
		case strings.HasPrefix(s[i:], "*/"):
			depth, i = depth-1, i+2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// dollarTag is the opening $tag$ at the start of s, or "". $1 is a parameter, not a tag.
func dollarTag(s string) string {
	end := strings.IndexByte(s[1:], '$')
	if end < 0 {
		return ""
	}
	for i, r := range s[1 : 1+end] {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
		if !letter && (i == 0 || r < '0' || r > '9') {
			return ""
		}
	}
	return s[:end+2]
}
