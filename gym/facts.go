package gym

import (
	"maps"
	"slices"

	"github.com/pommelgym/pommel/internal/task"
)

// TaskFacts are what a proof of a task needs to know of the running episode's task. An
// agent must never see them.
type TaskFacts struct {
	// MaxSteps is the task's own limit of steps.
	MaxSteps int
	Stages   []StageFacts
	// Params are the drawn values by name, "name.column" for those of a row.
	Params map[string]string
	// Unjudged are parameters that the instruction names and that nothing else depends on.
	Unjudged []string
	// Unsaid are free choices that the judge expects and that neither the instruction, nor the
	// setup, nor the start tells.
	Unsaid []string
	// Asked are the values of numbers and choices that the instruction names and the judge compares.
	Asked map[string]string
	// Secrets are values that an agent must find out by working: the right answers.
	Secrets []string
	// Answers says that a stage judges what the agent says.
	Answers bool
}

// StageFacts are a stage's place in the task.
type StageFacts struct {
	Name  string
	After []string
}

// Facts tells about the task of the running episode.
func (e *Env) Facts() (TaskFacts, error) {
	ep, err := e.running()
	if err != nil {
		return TaskFacts{}, err
	}
	inst := ep.Instance()
	f := TaskFacts{MaxSteps: inst.Limits.Steps, Params: values(inst), Asked: map[string]string{}}
	if f.MaxSteps == 0 {
		f.MaxSteps = task.DefaultSteps
	}
	for _, m := range inst.Reward.Stages {
		f.Stages = append(f.Stages, StageFacts{Name: m.Name, After: m.After})
		if m.Answer != nil {
			f.Answers = true
			f.Secrets = append(f.Secrets, answersOf(m.Answer)...)
		}
	}
	f.judge(e.g.suite.Find(inst.ID).Uses())
	return f, nil
}

// judge compares what the instruction says with what is judged.
func (f *TaskFacts) judge(u task.Uses) {
	matters := slices.Concat(u.Reward, u.Start, u.Setup)
	told := slices.Concat(u.Instruction, u.Start, u.Setup)
	for _, name := range slices.Sorted(maps.Keys(u.Kinds)) {
		free := u.Kinds[name] == "int" || u.Kinds[name] == "choice"
		said := slices.Contains(u.Instruction, name)
		// Another spelling of what is judged is judged with it.
		spelt := slices.ContainsFunc(u.Sources[name], func(of string) bool { return slices.Contains(matters, of) })
		if said && !spelt && !u.Reaches(name, matters) {
			f.Unjudged = append(f.Unjudged, name)
		}
		if free && !u.Reaches(name, told) && u.Reaches(name, u.Reward) {
			f.Unsaid = append(f.Unsaid, name)
		}
		// One that the judge knows only by what follows from it need not be done word by word.
		if free && said && slices.Contains(u.Reward, name) {
			f.Asked[name] = f.Params[name]
		}
	}
}

func values(inst *task.Instance) map[string]string {
	out := map[string]string{}
	for _, p := range inst.Params {
		for _, v := range p.Fields {
			if p.Row {
				out[p.Name+"."+v.Name] = v.Value.Text
			} else {
				out[p.Name] = v.Value.Text
			}
		}
	}
	return out
}

func answersOf(a *task.Answer) []string {
	list := a.AnyOf
	if a.Value != nil {
		list = append(slices.Clone(list), *a.Value)
	}
	var out []string
	for _, v := range list {
		if len(v.Items) == 0 {
			out = append(out, v.Text)
		}
		for _, item := range v.Items {
			out = append(out, item.Text)
		}
	}
	return out
}
