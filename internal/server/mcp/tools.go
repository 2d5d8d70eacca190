package mcp

import (
	"encoding/json"
	"strings"

	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/fault"
)

// ObserveTool looks without acting.
const ObserveTool = "observe"

// CallName is how counts name a call of a tool.
func CallName(tool string) string {
	if tool == ObserveTool {
		return "Observe"
	}
	return "Step"
}

// Tool is one action as agents that call tools see it.
type Tool struct {
	Name        string
	Description string
	Schema      map[string]any
}

// Tools are all actions, in the order of the documentation.
func Tools() []Tool {
	out := []Tool{{
		Name: ObserveTool, Description: "Read the task and look at the page again. It costs no step and changes nothing.",
		Schema: map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false},
	}}
	for _, s := range action.Signatures() {
		out = append(out, Tool{Name: s.Name, Description: s.Doc, Schema: schemaOf(s)})
	}
	return out
}

// schemaOf describes an action's arguments. That an element is named by its bid or by a
// selector is said in words: not all models' interfaces accept a choice between sets of
// properties.
func schemaOf(s action.Signature) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, p := range s.Params {
		switch {
		case p.Target:
			sel := action.SelectorName(p.Name)
			properties[p.Name] = map[string]any{"type": "string", "description": p.Doc + "; this or " + sel}
			properties[sel] = map[string]any{"type": "string", "description": `in place of ` + p.Name + `: CSS, "text=..." or "role=..."`}
			continue
		case !p.Optional:
			required = append(required, p.Name)
		}
		properties[p.Name] = property(p)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func property(p action.Param) map[string]any {
	one := map[string]any{"type": "string"}
	if len(p.OneOf) > 0 {
		one["enum"] = p.OneOf
	}
	var out map[string]any
	switch p.Kind {
	case action.Number:
		out = map[string]any{"type": "number"}
	case action.Bool:
		out = map[string]any{"type": "boolean"}
	case action.Texts:
		out = map[string]any{"anyOf": []any{one, map[string]any{"type": "array", "items": one}}}
	case action.AnyValue:
		out = map[string]any{}
	default:
		out = one
	}
	out["description"] = p.Doc
	if p.Default != nil {
		out["default"] = p.Default
	}
	return out
}

// ActionString is a tool call as an action string. What is wrong with its arguments the
// action's parser says, as it does for every agent.
func ActionString(name string, arguments json.RawMessage) (string, error) {
	args := map[string]any{}
	if len(arguments) > 0 && string(arguments) != "null" {
		if err := json.Unmarshal(arguments, &args); err != nil {
			return "", fault.New(fault.InvalidArgument, "the arguments of %s are no JSON object", name)
		}
	}
	for k := range args {
		if k == "" || strings.Trim(k, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return "", fault.New(fault.InvalidArgument, "%s takes no argument %q", name, k)
		}
	}
	return action.Call{Name: name, Args: args}.String(), nil
}
