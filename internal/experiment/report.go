package experiment

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed report.md
var page string

// Markdown is the report; plot is where its picture lies, relative to it, and command what made it.
func (r *Result) Markdown(plot, command string) ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"percent": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
		"points":  func(x float64) string { return fmt.Sprintf("%+.0f", 100*x) },
		"join":    strings.Join,
		"add":     func(a, b int) int { return a + b },
	}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("read the report's template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, struct {
		*Result
		Plot, Command string
	}{r, plot, command}); err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return b.Bytes(), nil
}

// First and Last are the arms that are compared.
func (r *Result) First() Arm { return r.Design.Arms[0] }

// Last is the arm whose gain over the first is shown.
func (r *Result) Last() Arm { return r.Design.Arms[len(r.Design.Arms)-1] }

// Total is how many episodes judged the policies.
func (r *Result) Total() (n int) {
	for _, c := range r.Cells {
		n += c.Episodes
	}
	return n
}
