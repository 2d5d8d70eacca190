package rewind

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// BenchmarkGoServer rewinds a small Go web server after one request each.
func BenchmarkGoServer(b *testing.B) {
	need(b)
	if os.Getenv(insideEnv) != "" {
		goServer(b)
		return
	}
	out, err := runInside(b, "-test.run=^$", "-test.bench=^BenchmarkGoServer$", fmt.Sprintf("-test.benchtime=%dx", b.N))
	if err != nil {
		b.Fatalf("inside its namespaces the benchmark failed: %v\n%s", err, out)
	}
	// A benchmark is tried with one rewind first: its figures are not those that count.
	tries := strings.Split(string(out), "FIGURES ")
	var p50, p99, pages float64
	if _, err := fmt.Sscan(tries[len(tries)-1], &p50, &p99, &pages); len(tries) == 1 || err != nil {
		b.Fatalf("no figures: %v\n%s", err, out)
	}
	b.ReportMetric(p50, "p50-us")
	b.ReportMetric(p99, "p99-us")
	b.ReportMetric(pages, "pages")
}

func goServer(b *testing.B) {
	p := startTarget(b, "http")
	url := "http://" + p.line()
	client := &http.Client{Transport: &http.Transport{}}
	count := func() string {
		resp, err := client.Get(url + "/count")
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			b.Fatal(err)
		}
		return string(text)
	}
	for range 20 {
		count()
	}
	tree := attach(b, Options{Roots: []int{p.pid()}, Rearm: 20})
	s := snapshot(b, tree)
	var took, pages []float64
	for range b.N {
		if got := count(); got != "21" {
			b.Fatalf("the server counts %s, want 21", got)
		}
		r := mustRewind(b, tree, s)
		took = append(took, float64(r.Total.Nanoseconds())/1000)
		pages = append(pages, float64(r.PagesWritten+r.PagesZeroed+r.PagesDropped))
	}
	for _, list := range [][]float64{took, pages} {
		slices.Sort(list)
	}
	at := func(list []float64, q float64) float64 { return list[int(q*float64(len(list)-1))] }
	fmt.Println("FIGURES", at(took, 0.5), at(took, 0.99), at(pages, 0.5))
}
