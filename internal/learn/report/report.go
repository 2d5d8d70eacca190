package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/internal/learn/train"
)

//go:embed report.html
var page string

// Write writes the plots, the log and the report into a folder, which is made if need be.
func Write(dir string, o *train.Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the report's folder: %w", err)
	}
	curve, err := Curve(o)
	if err != nil {
		return err
	}
	tasks, err := Tasks(o)
	if err != nil {
		return err
	}
	html, err := HTML(o, curve, tasks)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"curve.png", curve}, {"tasks.png", tasks}, {"report.html", html}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return Log(dir, o)
}

// Log writes train.json alone, in one piece: who reads it meanwhile, such as the dashboard,
// finds the old one or the new one.
func Log(dir string, o *train.Outcome) error {
	log, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode log: %w", err)
	}
	next := filepath.Join(dir, ".train.json.next")
	if err := os.WriteFile(next, append(log, '\n'), 0o644); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if err := os.Rename(next, filepath.Join(dir, "train.json")); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// HTML is the report as one page with its pictures inside.
func HTML(o *train.Outcome, curve, tasks []byte) ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"percent": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
		"share": func(part, of int) string {
			if of == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of))
		},
	}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("read the report's page: %w", err)
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		*train.Outcome
		CurvePNG, TasksPNG template.URL
	}{o, picture(curve), picture(tasks)})
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return b.Bytes(), nil
}

func picture(png []byte) template.URL {
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(png))
}
