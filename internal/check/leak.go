package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/gym/schema"
)

// shortest is the length from which a secret is told from a word that stands in any page.
const shortest = 4

// secrets: no right answer lies where no user would read it.
func (p *prover) secrets(context.Context) (string, error) {
	for _, r := range p.oracles[:1] {
		for _, x := range r.results {
			for _, s := range p.facts.Secrets {
				if where := lies(s, x.Observation); where != "" {
					return fmt.Sprintf("seed %d, step %d: the answer %q lies in %s of %s and cannot be read on the page", r.seed, x.Step, s, where, x.Observation.URL), nil
				}
			}
		}
	}
	return "", nil
}

// lies says in which part of a page a secret lies that its text does not show.
func lies(secret string, o *gym.Observation) string {
	s, text := plain(secret), plain(o.Text)
	if len(s) < shortest || strings.Contains(text, s) || dated(secret, text) {
		return ""
	}
	if strings.Contains(plain(o.URL), s) {
		return "the address"
	}
	if strings.Contains(plain(o.HTML), s) {
		return "the source"
	}
	return ""
}

// spellings are how pages write a date that their source has as year, month and day.
var spellings = []string{"2 January 2006", "January 2, 2006", "2 Jan 2006", "Jan 2, 2006", "02/01/2006", "01/02/2006", "2/1/2006", "1/2/2006", "02.01.2006", "2.1.2006"}

// dated says whether a secret is a date that the text shows in words or another order.
func dated(secret, text string) bool {
	day, err := time.Parse(time.DateOnly, secret)
	return err == nil && slices.ContainsFunc(spellings, func(layout string) bool { return strings.Contains(text, plain(day.Format(layout))) })
}

// plain leaves out what separates digits and words differently from page to page.
func plain(s string) string {
	return strings.ToLower(strings.NewReplacer(",", "", " ", "", "\u00a0", "", "\n", "", "\t", "", "&nbsp;", "", "\\", "").Replace(s))
}

// confined: an agent cannot leave the application's pages.
func (p *prover) confined(ctx context.Context) (string, error) {
	found := ""
	_, err := p.other(ctx, "who goes astray", p.c.Seeds[0], 1000, func(ctx context.Context, e *player) error {
		start := e.First().Observation.URL
		for _, to := range outside(start) {
			r, err := e.Step(ctx, "goto("+quote(to)+")")
			if err != nil {
				return err
			}
			if d := escaped(to, r); d != "" {
				found = d
				return nil
			}
			if r.Done() {
				return nil
			}
		}
		return nil
	})
	return found, err
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string can always be encoded
	return string(b)
}

// outside are addresses that no agent may open.
func outside(start string) []string {
	return []string{
		"file:///etc/passwd", "file:///", "view-source:" + start, "chrome://version", "about:srcdoc",
		"javascript:document.write(1)", "data:text/html,<h1>out</h1>", "http://127.0.0.1:5432/", "http://localhost:5432/",
		"http://[::1]:5432/", "http://169.254.169.254/latest/meta-data/", "http://example.com/", "ftp://127.0.0.1/",
	}
}

// escaped says what an agent got to see of an address outside.
func escaped(to string, r *gym.Result) string {
	u, err := url.Parse(r.Observation.URL)
	if err == nil && (r.Observation.URL == "about:blank" || u.Scheme == "http" || u.Scheme == "https") && r.Observation.LastActionError != nil {
		return ""
	}
	return fmt.Sprintf("goto(%q) was carried out and led to %s", to, r.Observation.URL)
}

// compiled is the schema of observations, compiled once.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema.Observation)))
	if err != nil {
		return nil, fmt.Errorf("read the schema of observations: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("observation.schema.json", doc); err != nil {
		return nil, fmt.Errorf("read the schema of observations: %w", err)
	}
	return c.Compile("observation.schema.json")
})

// schema: observations are what their schema says.
func (p *prover) schema(context.Context) (string, error) {
	for _, r := range append(p.oracles[:1:1], p.others...) {
		for _, x := range r.results {
			d, err := misfit(x.Observation)
			if err != nil {
				return "", err
			}
			if d != "" {
				return fmt.Sprintf("seed %d, %s, step %d: %s", r.seed, r.who, x.Step, d), nil
			}
		}
	}
	return "", nil
}

// misfit says how a value differs from the schema of observations.
func misfit(o any) (string, error) {
	s, err := compiled()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode observation: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return "", fmt.Errorf("decode observation: %w", err)
	}
	if err := s.Validate(doc); err != nil {
		return err.Error(), nil
	}
	return "", nil
}
