package browser

import (
	"encoding/json"
	"strings"

	"github.com/pommelgym/pommel/internal/cdp"
)

// onEvent takes the events of one tab. It runs on the reader: it only notes.
func (p *page) onEvent(ev cdp.Event) {
	switch ev.Method {
	case "Runtime.executionContextCreated", "Runtime.executionContextDestroyed", "Runtime.executionContextsCleared":
		p.onContext(ev)
	case "Page.frameStartedLoading", "Page.frameStoppedLoading", "Page.frameScheduledNavigation",
		"Page.frameClearedScheduledNavigation", "Page.frameStartedNavigating", "Page.frameRequestedNavigation", "Page.frameDetached", "Page.frameNavigated", "Page.navigatedWithinDocument":
		p.onFrame(ev)
	case "Emulation.virtualTimeBudgetExpired":
		p.b.update(func() { p.expired++ })
	case "Runtime.bindingCalled":
		p.onBinding(ev)
	case "Page.javascriptDialogOpening", "Page.javascriptDialogClosed":
		p.onDialog(ev)
	case "Fetch.requestPaused":
		p.onPaused(ev.Params)
	case "Inspector.targetCrashed":
		p.b.update(func() { p.crashed = true; p.agentCtx = 0 })
	case "Page.fileChooserOpened":
		p.b.update(func() { p.b.notes = append(p.b.notes, "the page asks for a file: use upload_file") })
	case "Page.windowOpen":
		var v struct {
			URL string `json:"url"`
		}
		_ = json.Unmarshal(ev.Params, &v)
		p.b.update(func() { p.b.expecting++; p.b.wanted = v.URL })
	case "Input.dragIntercepted":
		var v struct {
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal(ev.Params, &v) == nil {
			p.b.update(func() { p.drag = v.Data })
		}
	}
}

func (p *page) onContext(ev cdp.Event) {
	var v struct {
		Context struct {
			ID       int64  `json:"id"`
			UniqueID string `json:"uniqueId"`
			Name     string `json:"name"`
			AuxData  struct {
				FrameID string `json:"frameId"`
			} `json:"auxData"`
		} `json:"context"`
		ExecutionContextID int64 `json:"executionContextId"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	p.b.update(func() {
		switch ev.Method {
		case "Runtime.executionContextsCleared":
			p.agentCtx = 0
			clear(p.contexts)
		case "Runtime.executionContextDestroyed":
			delete(p.contexts, v.ExecutionContextID)
			if p.agentCtx == v.ExecutionContextID {
				p.agentCtx = 0
			}
		default:
			if v.Context.Name != agentWorldName {
				return
			}
			p.contexts[v.Context.ID] = frameContext{frame: v.Context.AuxData.FrameID, unique: v.Context.UniqueID}
			if v.Context.AuxData.FrameID == p.target {
				p.agentCtx = v.Context.ID
			}
		}
	})
}

func (p *page) onFrame(ev cdp.Event) {
	var v struct {
		FrameID string `json:"frameId"`
		URL     string `json:"url"`
		// Disposition says where a link leads: currentTab, newTab, download ...
		Disposition    string `json:"disposition"`
		NavigationType string `json:"navigationType"`
		Frame          struct {
			ID             string `json:"id"`
			ParentID       string `json:"parentId"`
			URL            string `json:"url"`
			URLFragment    string `json:"urlFragment"`
			UnreachableURL string `json:"unreachableUrl"`
		} `json:"frame"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	p.b.update(func() {
		switch ev.Method {
		case "Page.frameStartedLoading":
			p.loading[v.FrameID] = true
		case "Page.frameStartedNavigating":
			if v.FrameID == p.target && v.NavigationType == "differentDocument" {
				p.departures++
				p.coming = true
				// The browser itself opens a link in a new tab: nobody says that it starts to load.
				if p.commits == 0 {
					p.loading[v.FrameID] = true
				}
			}
		case "Page.frameRequestedNavigation":
			if v.Disposition == "download" {
				p.departures++
			}
		case "Page.frameStoppedLoading":
			delete(p.loading, v.FrameID)
			p.coming = p.coming && v.FrameID != p.target
		case "Page.frameScheduledNavigation":
			p.scheduled[v.FrameID] = true
		case "Page.frameClearedScheduledNavigation":
			delete(p.scheduled, v.FrameID)
		case "Page.frameDetached":
			delete(p.loading, v.FrameID)
			delete(p.scheduled, v.FrameID)
		case "Page.navigatedWithinDocument":
			if v.FrameID == p.target {
				p.url = v.URL
			}
		case "Page.frameNavigated":
			if v.Frame.ParentID != "" {
				return
			}
			p.url = v.Frame.URL + v.Frame.URLFragment
			p.failedURL = v.Frame.UnreachableURL
			p.commits++
			p.coming = false
			// What the old document had going went with it.
			p.streams, p.dirty = false, true
			p.b.overtaken(p)
		}
	})
}

// onBinding takes what the page's world reports: "dirty" when it started something
// that a step should wait for, "stream" when it opened what never ends.
func (p *page) onBinding(ev cdp.Event) {
	var v struct {
		Name    string `json:"name"`
		Payload string `json:"payload"`
	}
	if json.Unmarshal(ev.Params, &v) != nil || v.Name != p.b.secret {
		return
	}
	kind, rest, _ := strings.Cut(v.Payload, " ")
	p.b.update(func() {
		switch kind {
		case "dirty":
			p.dirty = true
		case "stream":
			p.streams = true
		case "closing":
			// Only windows that a script has opened may close themselves.
			p.closing = len(p.b.tabs) > 1
		case "blocked":
			p.b.blocked = append(p.b.blocked, rest)
		}
	})
}

func (p *page) onDialog(ev cdp.Event) {
	var v struct {
		Type          string `json:"type"`
		Message       string `json:"message"`
		DefaultPrompt string `json:"defaultPrompt"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	p.b.update(func() {
		if ev.Method == "Page.javascriptDialogClosed" {
			p.dialog = nil
			return
		}
		p.dialogs++
		p.dialog = &Dialog{Type: v.Type, Message: strings.ToValidUTF8(v.Message, "\uFFFD"), Default: v.DefaultPrompt}
	})
}
