package openenv

import (
	"net/http"
	"strings"

	"github.com/pommelgym/pommel/internal/server/wire"
)

// object is a JSON schema, or part of one.
type object = map[string]any

func (h *Handler) serveHealth(w http.ResponseWriter, _ *http.Request) {
	wire.WriteJSON(w, http.StatusOK, object{"status": "healthy"})
}

func (h *Handler) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	d := h.cfg.Sessions.Describe()
	wire.WriteJSON(w, http.StatusOK, object{
		"name": d.World, "version": d.Version,
		"description":    d.WorldTitle + ": an agent works in a real browser against a real application and is paid by database rows.",
		"readme_content": nil, "author": nil, "documentation_url": "https://github.com/pommelgym/pommel",
	})
}

func (h *Handler) serveSchema(w http.ResponseWriter, _ *http.Request) {
	wire.WriteJSON(w, http.StatusOK, object{
		"action": actionSchema(), "observation": observationSchema(), "reset_observation": observationSchema(), "state": stateSchema(),
	})
}

func typed(kind, doc string) object { return object{"type": kind, "description": doc} }

// actionSchema has one required field: harnesses take a model's plain text for it.
func actionSchema() object {
	return object{
		"title": "BrowserAction", "type": "object", "additionalProperties": false, "required": []string{"action_str"},
		"properties": object{
			"action_str": typed("string", `One or more calls, such as click("a12") or fill(selector="#email", value="a@b.c"); docs/actions.md lists them.`),
			"step":       object{"type": "integer", "minimum": 0, "description": "Number of this step, from 1: with it a repeated request is carried out once. 0 is the next step."},
			"metadata":   typed("object", "Ignored."),
		},
	}
}

func observationSchema() object {
	p := object{
		"goal":              typed("string", "What the agent should do."),
		"url":               typed("string", "Address of the active tab."),
		"title":             typed("string", "Title of the active tab."),
		"text":              typed("string", "Accessibility-style tree of the active tab, one node a line, with bids."),
		"last_action":       typed("string", "The action before this observation."),
		"error":             typed("string", "Why it did not work, or nothing."),
		"last_action_error": typed("boolean", "Whether it did not work."),
		"focused_bid":       typed("string", "The element with the keyboard's focus."),
		"tabs":              object{"type": "array", "items": typed("object", "index, url, title, active"), "description": "Open tabs."},
		"dialog":            object{"type": []string{"object", "null"}, "description": "The open JavaScript dialog: type, message, default."},
		"messages":          object{"type": "array", "items": object{"type": "string"}, "description": "What the agent has said to the user."},
		"truncated":         typed("boolean", "Something was cut at its bound."),
		"elements":          object{"type": "array", "items": object{"type": "object"}, "description": "With elements: true in reset."},
		"html":              typed("string", "With html: true in reset."),
		"axtree":            object{"description": "With axtree: true in reset."},
		"screenshot":        typed("object", `With screenshot: "png" or "jpeg" in reset: format, width, height, scale, and data in base64.`),
	}
	required := strings.Fields("goal url title text last_action error last_action_error focused_bid tabs dialog messages truncated")
	return object{"title": "BrowserObservation", "type": "object", "properties": p, "required": required}
}

func stateSchema() object {
	return object{
		"title": "BrowserState", "type": "object",
		"properties": object{
			"episode_id":  object{"type": []string{"string", "null"}},
			"step_count":  object{"type": "integer", "minimum": 0},
			"benchmark":   typed("string", "The world."),
			"task_name":   typed("string", "The task."),
			"seed":        typed("integer", "The seed."),
			"goal":        typed("string", "What the agent should do."),
			"current_url": typed("string", "Address after the last step."),
			"cum_reward":  typed("number", "Sum of the rewards so far."),
			"done":        typed("boolean", "The episode is over."),
		},
	}
}

func resetSchema() object {
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"task":       typed("string", "Id of a task; without it the seed chooses one of the training split."),
			"seed":       object{"type": "integer", "minimum": 0, "description": "Chooses the task's parameters; without it a random one of the training split."},
			"episode_id": object{"type": "string", "maxLength": 255, "description": "What state should call the episode; over a socket only."},
			"max_steps":  object{"type": "integer", "minimum": 0, "description": "Step limit in place of the task's own."},
			"profile":    typed("string", "Perturbations of the episode: a profile that the server knows by name, such as rough or rough@0.5."),
			"elements":   typed("boolean", "Observations hold elements."),
			"html":       typed("boolean", "Observations hold html."),
			"axtree":     typed("boolean", "Observations hold the accessibility tree."),
			"screenshot": object{"enum": []string{"", "png", "jpeg"}},
			"max_text":   object{"type": "integer", "minimum": 0, "description": "Bound of the text in bytes."},
			"client":     typed("string", "The caller's name, for logs and traces."),
			"request_id": typed("string", "Over HTTP: a repeated reset with the same id is the same episode."),
		},
	}
}

func (h *Handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	get := func(summary string) object {
		return object{"get": object{"summary": summary, "responses": object{"200": object{"description": "ok"}}}}
	}
	post := func(summary string, body object) object {
		content := object{"application/json": object{"schema": body}}
		return object{"post": object{
			"summary": summary, "requestBody": object{"content": content},
			"responses": object{"200": object{"description": "ok"}, "422": object{"description": "a field is wrong"}},
		}}
	}
	step := object{
		"type": "object", "required": []string{"action", "episode_id"},
		"properties": object{"action": actionSchema(), "episode_id": typed("string", "metadata.episode_id of the reset.")},
	}
	wire.WriteJSON(w, http.StatusOK, object{
		"openapi": "3.1.0",
		"info":    object{"title": "Pommel as an OpenEnv environment", "version": "1.0.0"},
		"paths": object{
			"/reset": post("Start an episode", resetSchema()), "/step": post("Carry out an action", step),
			"/state": get("How far an episode is"), "/close": post("End an episode", object{"type": "object"}),
			"/health": get("Health"), "/metadata": get("What is served here"), "/schema": get("Schemas of action, observation and state"),
			"/mcp": post("MCP for agents", object{"type": "object"}),
		},
	})
}
