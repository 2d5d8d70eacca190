package nemo

import "github.com/pommelgym/pommel/internal/server/mcp"

// answer of a tool. The model reads it; done is what agents look for who stop at the end.
type answer struct {
	Output string `json:"output"`
	Error  bool   `json:"error,omitempty"`
	Done   bool   `json:"done"`
}

// act carries out the action called name, whose arguments are the body.
func (h *Handler) act(name string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.needSession(); err != nil {
			return nil, err
		}
		ctx, id := c.r.Context(), c.session.episode
		st, err := h.cfg.Sessions.Status(ctx, id)
		if err != nil {
			return nil, err
		}
		if name == mcp.ObserveTool {
			head, o, err := mcp.Observe(ctx, h.cfg.Sessions, st)
			if err != nil {
				return nil, err
			}
			return answer{Output: mcp.ObservationText(head, o)}, nil
		}
		text, err := mcp.ActionString(name, c.body)
		if err != nil {
			return nil, err
		}
		r, err := h.cfg.Sessions.Step(ctx, id, c.session.next, text, st.View)
		if err != nil {
			return nil, err
		}
		c.session.next++
		return answer{mcp.StepText(r), r.Observation.LastActionError != nil, r.Done()}, nil
	}
}

// tool is an action as a request of the Responses API names it.
type tool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	Strict      bool           `json:"strict"`
}

// tools are what a row's responses_create_params.tools holds.
func (h *Handler) tools(*call) (any, error) {
	var out []tool
	for _, t := range mcp.Tools() {
		out = append(out, tool{"function", t.Name, t.Description, t.Schema, false})
	}
	return out, nil
}
