// Package kind is the catalogue of perturbations: what each one does, when it may
// strike, which settings it takes, what it costs to recover from it.
package kind

import (
	"slices"
	"strings"
)

// Point is what a kind is decided at.
type Point string

// The decision points.
const (
	// Request: each request that fits the targets.
	Request Point = "request"
	// Page: each document that is shown.
	Page Point = "page"
	// Step: before each action of the agent.
	Step Point = "step"
)

// Type is the type of a setting.
type Type string

// The types of settings. Durations scale with the strength.
const (
	Duration Type = "duration"
	Number   Type = "number"
	Text     Type = "text"
)

// Setting is one thing about a kind that a profile may choose.
type Setting struct {
	Name string
	Type Type
	// Default is what is drawn from if the profile says nothing.
	Default []string
	// Min and Max bound durations (ms) and numbers.
	Min, Max int
	// Choices are the texts allowed; empty allows any.
	Choices []string
	Doc     string
}

// Kind is one kind of friction.
type Kind struct {
	Name  string
	Point Point
	Doc   string
	// Cost is how many steps it takes to get over one firing.
	Cost int
	// Recovery says what a careful user does.
	Recovery string
	Settings []Setting
	// Types and Methods are the requests that it applies to unless the profile says otherwise.
	Types, Methods []string
	// Script is, for a world's own kind of point page, what runs in the page.
	Script string
	// SQL is, for a world's own kind of point step, what is done to the database.
	SQL *SQL
	// Own says that a world brought it.
	Own bool
}

// SQL is a perturbation of the database, by the rules of the application that owns it.
type SQL struct {
	// Needs is asked when an episode starts: without a row the kind does nothing in it. Its
	// columns are known to all below as ${column}.
	Needs string
	// When is asked before each step from the planned one on, until it has a row. Its columns
	// are known to Run.
	When string
	// Run runs in one transaction as the application's role.
	Run []string
	// Undo runs in the same way before the step that comes Lasts steps later; 0 is never.
	Undo  []string
	Lasts int
	// Seen is what can be seen of it, for the trainer.
	Seen string
	// Tell is added to the task's instruction.
	Tell string
}

// Setting finds a setting.
func (k *Kind) Setting(name string) (Setting, bool) {
	for _, s := range k.Settings {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// Family is the part of the name before the dot.
func (k *Kind) Family() string {
	f, _, _ := strings.Cut(k.Name, ".")
	return f
}

// RequestTypes are the types of requests that targets may name.
var RequestTypes = []string{"document", "fetch", "script", "stylesheet", "image", "font", "media", "other"}

// Find finds a kind that Pommel brings.
func Find(name string) (*Kind, bool) {
	for i := range catalogue {
		if catalogue[i].Name == name {
			k := catalogue[i]
			return &k, true
		}
	}
	return nil, false
}

// All lists the kinds that Pommel brings, by name.
func All() []Kind {
	out := slices.Clone(catalogue)
	slices.SortFunc(out, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Names lists their names.
func Names() []string {
	var out []string
	for _, k := range All() {
		out = append(out, k.Name)
	}
	return out
}
