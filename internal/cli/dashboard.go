package cli

import (
	"context"
	"encoding/json"
	"os"

	"github.com/pommelgym/pommel/internal/server"
	"github.com/pommelgym/pommel/internal/version"
)

type dashboardCmd struct {
	listenFlags
	Traces string `default:"" help:"Folder of recorded episodes. Default: below the user's state folder."`
	Addr   string `default:"127.0.0.1:7778" help:"Where to listen: host:port, or unix:/path. Port 0 takes a free one."`
}

// Validate refuses what cannot be meant.
func (c *dashboardCmd) Validate() error { return c.listenFlags.validate() }

func (c *dashboardCmd) Run(ctx context.Context, s *State) error {
	o, err := c.options(c.Addr)
	if err != nil {
		return err
	}
	o.Traces = tracesIn(c.Traces)
	return server.NewViewer(o).ListenAndServe(ctx, c.Addr, func(address string) {
		if c.JSON {
			_ = json.NewEncoder(s.Stdout).Encode(map[string]any{"address": address, "traces": o.Traces, "pommel": version.String(), "pid": os.Getpid()})
			return
		}
		s.say("pommel %s shows the episodes of %s on %s/", version.String(), o.Traces, address)
	})
}
