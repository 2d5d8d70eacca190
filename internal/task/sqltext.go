package task

import (
	"strconv"
	"strings"
)

// sqlText is what a look at the tokens of a statement tells. It is no parser:
// it knows strings, quoted names, comments and words, which is what binding needs.
type sqlText struct {
	sql string
	// refs are the `${...}` that stand where a value may stand.
	refs []reference
	// misplaced are those inside a string or a quoted name.
	misplaced []reference
	// words are the unquoted words, in lower case.
	words []sqlWord
	// dollar is the offset of a hand-written $1, or -1.
	dollar int
	// second is the offset of a second statement, or -1.
	second int
}

type sqlWord struct {
	text   string
	offset int
	depth  int
	// call is set when an opening parenthesis follows.
	call bool
}

// scanSQL looks at the tokens of one statement.
func scanSQL(sql string) *sqlText {
	t := &sqlText{sql: sql, dollar: -1, second: -1}
	depth, ended := 0, false
	for i := 0; i < len(sql); {
		start := i
		end, opaque := skipOpaque(sql, i)
		switch {
		case opaque:
			i = end
			if !isComment(sql[start:end]) {
				t.takeOpaque(start, end)
			} else {
				continue
			}
		case isSpace(sql[i]):
			i++
			continue
		case sql[i] == ';':
			ended = true
			i++
			continue
		case strings.HasPrefix(sql[i:], "${"):
			i = t.takeReference(i)
		case sql[i] == '$' && i+1 < len(sql) && isDigit(sql[i+1]):
			if t.dollar < 0 {
				t.dollar = i
			}
			i += 2
		case isWordStart(sql[i]):
			i = t.takeWord(i, depth)
		default:
			switch sql[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			i++
		}
		if ended && t.second < 0 {
			t.second = start
		}
	}
	return t
}

func (t *sqlText) takeReference(i int) int {
	end := strings.IndexByte(t.sql[i:], '}')
	if end < 0 {
		return i + 2
	}
	refs, _ := references(t.sql[i : i+end+1])
	for _, r := range refs {
		r.Start, r.End = i, i+end+1
		t.refs = append(t.refs, r)
	}
	return i + end + 1
}

func (t *sqlText) takeOpaque(start, end int) {
	refs, _ := references(t.sql[start:end])
	for _, r := range refs {
		r.Start += start
		r.End += start
		t.misplaced = append(t.misplaced, r)
	}
}

func (t *sqlText) takeWord(i, depth int) int {
	start := i
	for i < len(t.sql) && isWordPart(t.sql[i]) {
		i++
	}
	w := sqlWord{text: strings.ToLower(t.sql[start:i]), offset: start, depth: depth}
	for j := i; j < len(t.sql); j++ {
		if !isSpace(t.sql[j]) {
			w.call = t.sql[j] == '('
			break
		}
	}
	t.words = append(t.words, w)
	return i
}

// ordered says whether the statement itself, not a part of it, has an ORDER BY.
func (t *sqlText) ordered() bool {
	for i := 0; i+1 < len(t.words); i++ {
		if t.words[i].text == "order" && t.words[i+1].text == "by" && t.words[i].depth == 0 {
			return true
		}
	}
	return false
}

// first is the first word of the statement.
func (t *sqlText) first() sqlWord {
	if len(t.words) == 0 {
		return sqlWord{}
	}
	return t.words[0]
}

// volatile finds the first call of a function whose value differs from run to run.
func (t *sqlText) volatile() (sqlWord, bool) {
	for _, w := range t.words {
		if w.call && volatileCalls[w.text] || bareVolatile[w.text] {
			return w, true
		}
	}
	return sqlWord{}, false
}

var volatileCalls = set("random", "now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday",
	"gen_random_uuid", "uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4", "uuidv4", "uuidv7", "nextval", "currval",
	"lastval", "setval", "gen_random_bytes", "pg_backend_pid", "txid_current", "pg_current_xact_id", "random_normal", "age", "pg_sleep")

var bareVolatile = set("current_timestamp", "current_date", "current_time", "localtime", "localtimestamp")

// bind writes the statement with $1, $2 ... in place of its references, in the order in
// which they stand. Each gets a number of its own, so that PostgreSQL infers the type of
// each from its own context.
func (t *sqlText) bind() string {
	var b strings.Builder
	last := 0
	for i, r := range t.refs {
		b.WriteString(t.sql[last:r.Start])
		b.WriteString("$" + strconv.Itoa(i+1))
		last = r.End
	}
	b.WriteString(t.sql[last:])
	return strings.TrimSpace(b.String())
}

// sourceOffset maps a byte offset of the bound statement to the offset in the original.
func (t *sqlText) sourceOffset(bound int) int {
	lead := len(t.sql) - len(strings.TrimLeft(t.sql, " \t\r\n"))
	bound += lead
	shift := 0
	for i, r := range t.refs {
		at := r.Start - shift
		if bound < at {
			break
		}
		short := len("$" + strconv.Itoa(i+1))
		if bound < at+short {
			return r.Start
		}
		shift += (r.End - r.Start) - short
	}
	return min(bound+shift, len(t.sql))
}

// skipOpaque finds the end of a string, quoted name or comment that starts at i.
func skipOpaque(sql string, i int) (end int, ok bool) {
	rest := sql[i:]
	switch {
	case strings.HasPrefix(rest, "--"):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return i + n + 1, true
		}
		return len(sql), true
	case strings.HasPrefix(rest, "/*"):
		return skipBlockComment(sql, i), true
	case rest[0] == '\'':
		escapes := i > 0 && (sql[i-1] == 'e' || sql[i-1] == 'E') && (i == 1 || !isWordPart(sql[i-2]))
		return skipQuoted(sql, i, '\'', escapes), true
	case rest[0] == '"':
		return skipQuoted(sql, i, '"', false), true
	case rest[0] == '$' && !strings.HasPrefix(rest, "${"):
		return skipDollarQuoted(sql, i)
	}
	return i, false
}

func isComment(s string) bool { return strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*") }

// skipBlockComment skips a comment; those of SQL nest.
func skipBlockComment(sql string, i int) int {
	depth := 0
	for i < len(sql) {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

func skipQuoted(sql string, i int, quote byte, escapes bool) int {
	for i++; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == quote && i+1 < len(sql) && sql[i+1] == quote:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// skipDollarQuoted skips $tag$ ... $tag$. A $ that starts no such quote is not opaque.
func skipDollarQuoted(sql string, i int) (int, bool) {
	n := strings.IndexByte(sql[i+1:], '$')
	if n < 0 || i > 0 && isWordPart(sql[i-1]) {
		return i, false
	}
	tag := sql[i : i+n+2]
	for j, c := range []byte(tag[1 : len(tag)-1]) {
		if !isWordPart(c) || j == 0 && isDigit(c) {
			return i, false
		}
	}
	end := strings.Index(sql[i+len(tag):], tag)
	if end < 0 {
		return len(sql), true
	}
	return i + len(tag) + end + len(tag), true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func isWordPart(c byte) bool { return isWordStart(c) || isDigit(c) }

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}
