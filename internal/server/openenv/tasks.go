package openenv

import (
	"net/http"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/server/wire"
)

// splits are the names under which tasks are listed.
var splits = []string{"train", "validation", "test"}

// taskRoutes answer what tasks there are. An entry is what reset takes.
func (h *Handler) taskRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /list_environments", func(w http.ResponseWriter, _ *http.Request) {
		wire.WriteJSON(w, http.StatusOK, []string{h.cfg.Sessions.Describe().World})
	})
	world := h.cfg.Sessions.Describe().World
	mux.HandleFunc("GET /"+world+"/splits", h.serveSplits)
	mux.HandleFunc("POST /"+world+"/tasks", h.serveTasks(func(t []gym.TaskInfo, _ *fields) (any, error) {
		return map[string]any{"tasks": t, "env_name": world}, nil
	}))
	mux.HandleFunc("POST /"+world+"/num_tasks", h.serveTasks(func(t []gym.TaskInfo, _ *fields) (any, error) {
		return map[string]int{"num_tasks": len(t)}, nil
	}))
	mux.HandleFunc("POST /"+world+"/task", h.serveTasks(func(t []gym.TaskInfo, f *fields) (any, error) {
		i := int(f.number("index"))
		if err := f.err(); err != nil {
			return nil, err
		}
		if i >= len(t) {
			return nil, fault.New(fault.InvalidArgument, "index is %d; the split has %d tasks", i, len(t))
		}
		return map[string]any{"task": t[i]}, nil
	}))
	mux.HandleFunc("POST /"+world+"/task_range", h.serveTasks(func(t []gym.TaskInfo, f *fields) (any, error) {
		stop := len(t)
		if f.has("stop") {
			stop = min(stop, int(f.number("stop")))
		}
		start := min(int(f.number("start")), stop)
		if err := f.err(); err != nil {
			return nil, err
		}
		return map[string]any{"tasks": t[start:stop]}, nil
	}))
}

func (h *Handler) serveSplits(w http.ResponseWriter, _ *http.Request) {
	var out []map[string]string
	for _, s := range splits {
		out = append(out, map[string]string{"name": s, "type": s})
	}
	wire.WriteJSON(w, http.StatusOK, out)
}

func (h *Handler) serveTasks(choose func([]gym.TaskInfo, *fields) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		respond(h, w, "ListTasks", func() (any, error) {
			body, err := readBody(w, r)
			if err != nil {
				return nil, err
			}
			f := readFields("", body, "split", "index", "start", "stop")
			split := f.text("split")
			if err := f.err(); err != nil {
				return nil, err
			}
			tasks, err := h.tasks(split)
			if err != nil {
				return nil, err
			}
			return choose(tasks, f)
		})
	}
}

// tasks of a split; a split without tasks is no error here.
func (h *Handler) tasks(split string) ([]gym.TaskInfo, error) {
	tasks, err := h.cfg.Sessions.Tasks(split, "")
	if fault.KindOf(err) == fault.NotFound {
		return []gym.TaskInfo{}, nil
	}
	return tasks, err
}
