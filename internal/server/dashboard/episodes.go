package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

const (
	defaultPage = 100
	largestPage = 1000
)

// list is a part of the recorded episodes, and what all that match add up to.
type list struct {
	Episodes []head   `json:"episodes"`
	Total    int      `json:"total"` // in the folder
	Matching int      `json:"matching"`
	Success  int      `json:"success"`
	Reward   float64  `json:"mean_reward"`
	Steps    float64  `json:"mean_steps"`
	ByTask   []byTask `json:"by_task"`
	// Worlds, Profiles, Clients and Ends are what can be filtered for.
	Worlds   []string `json:"worlds"`
	Profiles []string `json:"profiles"`
	Clients  []string `json:"clients"`
	Ends     []string `json:"ends"`
	Tasks    []string `json:"tasks"`
}

type byTask struct {
	Task     string  `json:"task"`
	Episodes int     `json:"episodes"`
	Success  int     `json:"success"`
	Reward   float64 `json:"mean_reward"`
	Steps    float64 `json:"mean_steps"`
}

// filter says which episodes are wanted; empty fields are all.
type filter struct {
	task, world, profile, client, end, outcome, words string
}

func filterOf(q url.Values) filter {
	return filter{
		task: q.Get("task"), world: q.Get("world"), profile: q.Get("profile"), client: q.Get("client"), end: q.Get("end"),
		outcome: q.Get("outcome"), words: strings.ToLower(q.Get("q")),
	}
}

func (f *filter) takes(h *head) bool {
	is := func(want, have string) bool { return want == "" || want == have || want == "-" && have == "" }
	if !is(f.task, h.Task) || !is(f.world, h.World) || !is(f.profile, h.Profile) || !is(f.client, h.Client) || !is(f.end, h.End) {
		return false
	}
	if f.outcome != "" && f.outcome != h.outcome() {
		return false
	}
	hay := strings.ToLower(h.ID + " " + h.Task + " " + strconv.FormatInt(h.Seed, 10) + " " + h.Instruction + " " + h.Detail)
	for _, w := range strings.Fields(f.words) {
		if !strings.Contains(hay, w) {
			return false
		}
	}
	return true
}

// outcome is success, failure, or void for what says nothing about the agent.
func (h *head) outcome() string {
	switch {
	case h.Success:
		return "success"
	case h.End == "terminated", h.End == "truncated":
		return "failure"
	}
	return "void"
}

// episodes lists recorded episodes, newest first.
func (h *Handler) episodes(r *http.Request) (any, error) {
	q := r.URL.Query()
	from, err := number(q, "from", 0)
	if err != nil {
		return nil, err
	}
	limit, err := number(q, "limit", defaultPage)
	if err != nil {
		return nil, err
	}
	all, err := h.traces.heads()
	if err != nil {
		return nil, err
	}
	f := filterOf(q)
	out := list{Total: len(all)}
	var match []head
	for i := range all {
		if f.takes(&all[i]) {
			match = append(match, all[i])
		}
	}
	out.sum(match)
	out.choices(all)
	from = min(from, len(match))
	out.Episodes = append([]head{}, match[from:min(len(match), from+min(limit, largestPage))]...)
	return out, nil
}

func number(q url.Values, name string, fallback int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fault.New(fault.InvalidArgument, "%s is %q; want a number from 0", name, text)
	}
	return n, nil
}

// sum adds up what matches. Void episodes count in no rate.
func (l *list) sum(match []head) {
	tasks := map[string]*byTask{}
	played := 0
	for i := range match {
		h := &match[i]
		if h.outcome() == "void" {
			continue
		}
		played++
		t := tasks[h.Task]
		if t == nil {
			t = &byTask{Task: h.Task}
			tasks[h.Task] = t
		}
		t.Episodes++
		t.Reward += h.Reward
		t.Steps += float64(h.Steps)
		l.Reward += h.Reward
		l.Steps += float64(h.Steps)
		if h.Success {
			t.Success++
			l.Success++
		}
	}
	l.Matching = len(match)
	l.Reward /= float64(max(1, played))
	l.Steps /= float64(max(1, played))
	l.ByTask = []byTask{}
	for _, t := range tasks {
		t.Reward /= float64(t.Episodes)
		t.Steps /= float64(t.Episodes)
		l.ByTask = append(l.ByTask, *t)
	}
	slices.SortFunc(l.ByTask, func(a, b byTask) int { return cmp.Compare(a.Task, b.Task) })
}

func (l *list) choices(all []head) {
	of := func(f func(*head) string) []string {
		set := map[string]bool{}
		for i := range all {
			set[f(&all[i])] = true
		}
		out := []string{}
		for v := range set {
			out = append(out, v)
		}
		slices.Sort(out)
		return out
	}
	l.Worlds = of(func(h *head) string { return h.World })
	l.Profiles = of(func(h *head) string { return h.Profile })
	l.Clients = of(func(h *head) string { return h.Client })
	l.Ends = of(func(h *head) string { return h.End })
	l.Tasks = of(func(h *head) string { return h.Task })
}

// episode is one episode with all its steps, live or recorded.
func (h *Handler) episode(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if f, ok := h.book.film(id); ok {
		if f.Head.Limit == 0 {
			f.Head.Limit = h.limits()[f.Head.Task]
		}
		d := h.cfg.Sessions.Describe()
		f.Head.World, f.Head.Driver = d.World, d.Driver
		return f, nil
	}
	t, err := h.traces.read(id)
	if err != nil {
		return nil, err
	}
	f, err := filmOf(t)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the record of %q cannot be read", id)
	}
	return f, nil
}

// step is the rest of one step.
func (h *Handler) step(r *http.Request) (any, error) {
	id := r.PathValue("id")
	index, err := strconv.Atoi(r.PathValue("index"))
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "step %q; want a number from 0", r.PathValue("index"))
	}
	d, kept, live := h.book.detail(id, index)
	if kept {
		return d, nil
	}
	t, err := h.traces.read(id)
	if live && (err != nil || index >= len(t.Steps)) {
		return detail{Index: index, Forgotten: true, Tabs: nil}, nil
	}
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(t.Steps) {
		return nil, fault.New(fault.NotFound, "episode %q has no step at %d", id, index)
	}
	res, err := resultOf(&t.Steps[index])
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the record of %q cannot be read", id)
	}
	return detailOf(index, res), nil
}

// screenFile is how a record names its pictures; nothing else in its folder is served.
var screenFile = regexp.MustCompile(`^[0-9]{6}\.(png|jpeg)$`)

// attachment serves a recorded picture.
func (h *Handler) attachment(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("file")
	m := screenFile.FindStringSubmatch(name)
	if m == nil {
		h.refuse(w, r, fault.New(fault.NotFound, "%q names no picture", name))
		return
	}
	data, err := h.traces.attachment(id, name)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	picture(w, m[1], data)
}
