package mcp

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// maxPart bounds the text and the picture of one result.
const maxPart = 12 << 20

// fromStep is the result of an action.
func fromStep(r *gym.Result) *sdk.CallToolResult {
	out := look(stepHead(r), r.Observation)
	out.IsError = r.Observation.LastActionError != nil
	out.Meta = sdk.Meta{"step": r.Step, "done": r.Done()}
	return out
}

// StepText is what a model is told of an action that it has made. It says nothing of rewards.
func StepText(r *gym.Result) string { return ObservationText(stepHead(r), r.Observation) }

func stepHead(r *gym.Result) string {
	var head strings.Builder
	if e := r.Observation.LastActionError; e != nil {
		fmt.Fprintf(&head, "The action failed: %s\n", e)
	}
	for _, n := range r.Info.Notes {
		fmt.Fprintf(&head, "Note: %s\n", n)
	}
	switch {
	case r.Terminated:
		head.WriteString("The episode has ended.\n")
	case r.Truncated:
		head.WriteString("The episode has ended: the limit of steps is reached.\n")
	}
	return head.String()
}

// look is an observation as text, and as a picture when the episode's view asks for one.
func look(head string, o *gym.Observation) *sdk.CallToolResult {
	content := []sdk.Content{&sdk.TextContent{Text: ObservationText(head, o)}}
	if p := o.Screenshot; p != nil && len(p.Data) <= maxPart {
		content = append(content, &sdk.ImageContent{Data: p.Data, MIMEType: "image/" + p.Format})
	}
	return &sdk.CallToolResult{Content: content}
}

// ObservationText is an observation as a model reads it, behind head.
func ObservationText(head string, o *gym.Observation) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "URL: %s\nTitle: %s\n", o.URL, o.Title)
	if len(o.Tabs) > 1 {
		for _, t := range o.Tabs {
			mark := ""
			if t.Active {
				mark = " (active)"
			}
			fmt.Fprintf(&b, "Tab %d%s: %s %s\n", t.Index, mark, t.Title, t.URL)
		}
	}
	if d := o.Dialog; d != nil {
		fmt.Fprintf(&b, "Open dialog (%s): %s\n", d.Type, d.Message)
	}
	if o.FocusedBid != "" {
		fmt.Fprintf(&b, "Focus: %s\n", o.FocusedBid)
	}
	b.WriteString("\n" + o.Text)
	if o.HTML != "" {
		b.WriteString("\n\nHTML:\n" + o.HTML)
	}
	var cut bool
	text := wire.Cut(b.String(), maxPart, &cut)
	if cut {
		text += "\n(cut here)"
	}
	return text
}
