package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server"
	"github.com/pommelgym/pommel/internal/version"
)

type serveCmd struct {
	worldFlags
	Worlds int           `default:"2" help:"How many episodes can run at the same time."`
	Addr   string        `default:"127.0.0.1:7777" help:"Where to listen: host:port, or unix:/path. Port 0 takes a free one."`
	Token  string        `env:"POMMEL_TOKEN" help:"Token that callers must send; needed for addresses beyond loopback."`
	Lease  time.Duration `default:"60s" help:"How long a caller may be silent before its world is given back."`
	Idle   time.Duration `default:"1h" help:"How long an OpenEnv socket may send nothing while its host still answers."`
	Drain  time.Duration `default:"10s" help:"How long running episodes may go on after an interrupt."`
	JSON   bool          `help:"Print one line of JSON with the address once the server is ready."`
}

func (c *serveCmd) Validate() error {
	if c.Worlds < 1 || c.Lease < time.Second {
		return fmt.Errorf("--worlds takes 1 or more, --lease 1s or more")
	}
	return nil
}

func (c *serveCmd) Run(ctx context.Context, s *State) error {
	if err := server.CheckAddr(c.Addr, c.Token); err != nil {
		return usageError{err}
	}
	g, err := c.open(ctx, s, c.Worlds)
	if err != nil {
		return err
	}
	defer g.Close()
	sessions := g.Sessions(gym.SessionLimits{Lease: c.Lease})
	defer sessions.Close()
	srv := server.New(sessions, server.Options{
		Token: c.Token, Log: s.logger(c.Log), Idle: c.Idle,
		Drain: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, c.Drain)
			defer cancel()
			return sessions.Drain(ctx)
		},
	})
	return srv.ListenAndServe(ctx, c.Addr, func(address string) {
		d := g.Describe()
		if c.JSON {
			_ = json.NewEncoder(s.Stdout).Encode(map[string]any{
				"address": address, "world": d.World, "worlds": d.Worlds, "pommel": version.String(), "pid": os.Getpid(),
			})
			return
		}
		s.say("pommel %s serves world %s (%d worlds) on %s", version.String(), d.World, d.Worlds, address)
	})
}

// logger is a logger on standard error, or one that says nothing but warnings.
func (s *State) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: level}))
}
