package nemo

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
	"github.com/pommelgym/pommel/internal/fault"
)

// response is what a model has put out in the Responses API, of which only its last words
// matter here.
type response struct {
	Output []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"output"`
}

// verdict stands beside the reward. It is for the trainer.
type verdict struct {
	EpisodeID  string      `json:"episode_id"`
	Task       string      `json:"task"`
	Seed       int64       `json:"seed"`
	Steps      int         `json:"steps"`
	Success    bool        `json:"success"`
	Potential  float64     `json:"potential"`
	Terminated bool        `json:"terminated"`
	Truncated  bool        `json:"truncated"`
	Stages     []gym.Stage `json:"stages"`
	Collateral []string    `json:"collateral,omitempty"`
}

// verify returns the request with what the episode has earned. An agent that has stopped
// calling tools is done, and its last message is its answer. An episode that the
// infrastructure has lost is an error, never a reward.
func (h *Handler) verify(c *call) (any, error) {
	if err := c.needSession(); err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	if err := c.decode(&out); err != nil {
		return nil, err
	}
	var said response
	if len(out["response"]) == 0 || json.Unmarshal(out["response"], &said) != nil {
		return nil, fault.New(fault.InvalidArgument, "response is missing or no response of the Responses API")
	}
	st, err := h.finished(c.r.Context(), c.session.episode, said.answer())
	if err != nil {
		return nil, err
	}
	c.session.next = st.Calls + 1 // what the model still asks for comes after the end
	i := &st.Last.Info
	v, err := json.Marshal(verdict{
		EpisodeID: st.EpisodeID, Task: st.Task, Seed: st.Seed, Steps: st.Steps, Success: i.Success, Potential: i.Potential,
		Terminated: st.Last.Terminated, Truncated: st.Last.Truncated, Stages: i.Stages, Collateral: i.Collateral,
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write the verdict")
	}
	// Numbers of the top level are what NeMo Gym makes averages of.
	out["reward"], _ = json.Marshal(st.Reward)
	out["success"], _ = json.Marshal(i.Success)
	out["pommel_result"] = v
	return out, nil
}

// finished is the end of the episode, which it brings about if need be. A second verify
// finds the end of the first.
func (h *Handler) finished(ctx context.Context, id, words string) (*gym.Status, error) {
	st, err := h.cfg.Sessions.Status(ctx, id)
	if err != nil || st.Last.Done() {
		return st, err
	}
	end := action.Call{Name: "finish", Args: map[string]any{"answer": words}}.String()
	if _, err := h.cfg.Sessions.Step(ctx, id, 0, end, st.View); err != nil && fault.KindOf(err) != fault.EpisodeOver {
		return nil, err
	}
	return h.cfg.Sessions.Status(ctx, id)
}

// answer is the text of the last message.
func (r response) answer() string {
	for i := len(r.Output) - 1; i >= 0; i-- {
		o := r.Output[i]
		if o.Type != "message" {
			continue
		}
		var text string
		if json.Unmarshal(o.Content, &text) == nil {
			return text
		}
		var parts []struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(o.Content, &parts) // content of another shape holds no words
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	return ""
}
