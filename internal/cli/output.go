package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// jsonFlag is the flag that every command with a result has.
type jsonFlag struct {
	JSON bool `help:"Print one JSON object on standard output."`
}

// printJSON prints v, which must be an object, with the version and the host's facts added.
func (s *State) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	head, err := json.Marshal(envelope())
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := json.Unmarshal(head, &fields); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	enc := json.NewEncoder(s.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(fields)
}

// table prints rows in columns.
func table(w io.Writer, header string, rows ...[]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if header != "" {
		fmt.Fprintln(tw, strings.ReplaceAll(header, "|", "\t"))
	}
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	_ = tw.Flush()
}

func percent(part, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
