package cli

import (
	"context"

	"github.com/pommelgym/pommel/gym"
)

type doctorCmd struct{ jsonFlag }

func (c *doctorCmd) Run(ctx context.Context, s *State) error {
	probes := gym.Doctor(ctx)
	ok := true
	for _, p := range probes {
		ok = ok && (p.OK || !p.Needed)
	}
	if c.JSON {
		if err := s.printJSON(map[string]any{"ok": ok, "probes": probes}); err != nil {
			return err
		}
	} else {
		var rows [][]string
		for _, p := range probes {
			mark, note := "ok", p.Detail
			if !p.OK {
				mark, note = "no", p.Detail+". "+p.Remedy
				if p.Needed {
					mark = "MISSING"
				}
			}
			rows = append(rows, []string{mark, p.Name, note})
		}
		table(s.Stdout, "", rows...)
	}
	if !ok {
		return gym.NewError(gym.Unsupported, "this host cannot run worlds yet")
	}
	return nil
}
