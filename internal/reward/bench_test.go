package reward

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/postgres/pgtest"
	"github.com/pommelgym/pommel/internal/task"
)

// bench is a real database with a judge's connection and one as the application.
type bench struct {
	tb    testing.TB
	db    *pgtest.DB
	read  *postgres.Judge
	app   *pgx.Conn
	page  *fakePage
	judge *Judge
}

// fakePage stands for the browser, which only the stages about the page ask.
type fakePage struct {
	url, text, base string
	err             error
}

func (p *fakePage) URL(context.Context) (string, error)  { return p.url, p.err }
func (p *fakePage) Text(context.Context) (string, error) { return p.text, p.err }
func (p *fakePage) Base() string                         { return p.base }

func newBench(tb testing.TB, schema string) *bench {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := &bench{tb: tb, db: pgtest.New(tb, schema), page: &fakePage{base: "http://shop.test/"}}
	var err error
	b.read, err = postgres.OpenJudge(ctx, b.db.JudgeDSN)
	b.must(err)
	tb.Cleanup(func() { _ = b.read.Close(context.Background()) })
	b.app = pgtest.Connect(tb, b.db.AppDSN)
	return b
}

func (b *bench) must(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Fatal(err)
	}
}

// instance reads a task of which only the reward (and perhaps params) is given.
func (b *bench) instance(body string) *task.Instance {
	b.tb.Helper()
	spec, err := task.Parse("task.yaml", []byte("id: t\ntitle: T\ndifficulty: easy\nsplit: train\ninstruction: Do it.\n"+body))
	b.must(err)
	inst, err := task.Instantiate(context.Background(), spec, 0, b.read)
	b.must(err)
	return inst
}

// start begins an episode of a task.
func (b *bench) start(body string) *Verdict {
	b.tb.Helper()
	b.judge = New(b.instance(body), b.read, b.page)
	v, err := b.judge.Start(context.Background())
	b.must(err)
	return v
}

func (b *bench) exec(statements ...string) {
	b.tb.Helper()
	for _, s := range statements {
		if _, err := b.app.Exec(context.Background(), s); err != nil {
			b.tb.Fatalf("%s: %v", s, err)
		}
	}
}

func (b *bench) step(in Input) *Verdict {
	b.tb.Helper()
	v, err := b.judge.Evaluate(context.Background(), in)
	b.must(err)
	return v
}

// end judges a final step after it checked that looking changes nothing.
func (b *bench) end(in Input) *Verdict {
	b.tb.Helper()
	in.Final = true
	first, err := b.judge.Peek(context.Background(), in)
	b.must(err)
	second, err := b.judge.Peek(context.Background(), in)
	b.must(err)
	v := b.step(in)
	for _, other := range []*Verdict{first, second} {
		if show(other) != show(v) {
			b.tb.Errorf("asked again the judge says something else:\n%s\n%s", show(other), show(v))
		}
	}
	return v
}

func show(v *Verdict) string {
	return fmt.Sprintf("potential %g value %g reward %g success %v done %v\n%s", v.Potential, v.Value, v.Reward, v.Success, v.Done, v.Explain())
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// rewardOf is a task body with one query stage.
func rewardOf(query, expect string, more ...string) string {
	return "reward:\n  stages:\n    - name: done\n      weight: 1\n      query: " + query + "\n      expect: " + expect + "\n" + strings.Join(more, "\n") + "\n"
}

func said(s string) Input { return Input{Answer: &s} }
