package gym

import (
	"fmt"
	"html"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSoakNoPageTellsTheJudge goes to every page and reply that an agent can reach and
// looks for what only the judge may know. It sees a few pages of each kind; a soak, all.
func TestSoakNoPageTellsTheJudge(t *testing.T) {
	t.Parallel()
	each, all := 2, 60
	if os.Getenv("POMMEL_SOAK") != "" {
		each, all = 1000, 4000
	}
	for task, starts := range map[string][]string{
		// Its answer is a sum that no page shows.
		"spent-in-year":       {"/", "/cart", "/account", "/account/orders", "/checkout", "/help", "/search?q=lamp", "/api/suggest?q=la", "/api/stock", "/login", "/healthz", "/admin", "/task", "/reward", "/.git/config", "/robots.txt"},
		"staff-create-coupon": {"/", "/admin", "/admin/orders", "/admin/products", "/admin/coupons", "/admin/customers"},
	} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			env := newEnv(t)
			first := mustReset(t, env, Request{Task: task, Seed: 1, MaxSteps: 1 << 20})
			c := crawl{t: t, env: env, each: each, secrets: secretsOf(t, env), kinds: map[string]int{}, known: map[string]bool{}}
			if len(c.secrets) < 8 {
				t.Fatalf("the task has few secrets to look for: %q", c.secrets)
			}
			c.check(first.Observation)
			for _, u := range starts {
				c.add(u)
			}
			for n := 0; len(c.todo) > 0 && n < all; n++ {
				u := c.todo[0]
				c.todo = c.todo[1:]
				c.visit(u)
			}
			if c.pages < len(starts)/2 || len(c.kinds) < len(starts) {
				t.Errorf("only %d pages of %d kinds were seen", c.pages, len(c.kinds))
			}
		})
	}
}

// secretsOf are the task's words that no page may hold, by what they are.
func secretsOf(t *testing.T, env *Env) map[string]string {
	t.Helper()
	ep, err := env.running()
	if err != nil {
		t.Fatal(err)
	}
	inst := ep.Instance()
	out := map[string]string{"instruction": inst.Instruction, "task": inst.ID, "reward": "\"reward\"", "verdict": "verdict"}
	for _, s := range inst.Reward.Stages {
		if s.Statement.SQL != "" {
			out["query of "+s.Name] = s.Statement.SQL
		}
		if s.Answer != nil && s.Answer.Value != nil {
			out["answer of "+s.Name] = s.Answer.Value.Text
		}
	}
	for i, s := range inst.Setup {
		out[fmt.Sprint("setup ", i)] = s.SQL
	}
	for name, v := range inst.Cookies {
		out["cookie "+name] = v
	}
	for line := range strings.SplitSeq(inst.Oracle.Source, "\n") {
		if line = strings.TrimSpace(line); len(line) > 12 {
			out["oracle: "+line] = line
		}
	}
	return out
}

// crawl is one walk over a site.
type crawl struct {
	t       *testing.T
	env     *Env
	each    int // pages of one kind
	secrets map[string]string
	kinds   map[string]int
	known   map[string]bool
	todo    []string
	pages   int
}

var (
	links    = regexp.MustCompile(`(?:href|action|src|data-[a-z-]+)="(/[^"#]*)`)
	changing = regexp.MustCompile(`[^/]*\d[^/]*`)
	named    = regexp.MustCompile(`^/(p|c)/[^/]+`)
)

// add takes a page unless enough of its kind are known: the path without names and
// numbers, and the names in its query.
func (c *crawl) add(link string) {
	u, err := url.Parse(html.UnescapeString(link))
	if err != nil || c.known[u.String()] {
		return
	}
	c.known[u.String()] = true
	kind := changing.ReplaceAllString(named.ReplaceAllString(u.Path, "/$1/*"), "*")
	var names []string
	for k := range u.Query() {
		names = append(names, k)
	}
	slices.Sort(names)
	kind += "?" + strings.Join(names, "&")
	if c.kinds[kind]++; c.kinds[kind] <= c.each {
		c.todo = append(c.todo, u.String())
	}
}

func (c *crawl) visit(link string) {
	res, err := c.env.Step(testContext(c.t), fmt.Sprintf("goto(%q)", link), View{HTML: true, Elements: true})
	if err != nil {
		c.t.Fatalf("go to %s: %v", link, err)
	}
	if res.Done() || res.Reward > 0 {
		c.t.Fatalf("looking at %s was paid %v, %+v", link, res.Reward, res.Info)
	}
	if res.Observation.LastActionError == nil {
		c.pages++
	}
	c.check(res.Observation)
}

// check looks for secrets in all that an agent gets of a page, and takes its links.
func (c *crawl) check(o *Observation) {
	var elements strings.Builder
	for _, e := range o.Elements {
		elements.WriteString(e.Name + "\n" + e.Value + "\n")
	}
	for channel, s := range map[string]string{"text": o.Text, "html": html.UnescapeString(o.HTML), "elements": elements.String(), "title": o.Title} {
		flat := strings.Join(strings.Fields(strings.ReplaceAll(s, ",", "")), " ")
		for what, secret := range c.secrets {
			if strings.Contains(flat, strings.Join(strings.Fields(strings.ReplaceAll(secret, ",", "")), " ")) {
				c.t.Errorf("the %s of %s tells the %s", channel, o.URL, what)
			}
		}
	}
	for _, m := range links.FindAllStringSubmatch(o.HTML, -1) {
		c.add(m[1])
	}
}
