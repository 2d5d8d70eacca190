package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/server"
	"github.com/pommelgym/pommel/internal/server/spans"
	"github.com/pommelgym/pommel/internal/version"
)

// listenFlags say where a server listens and who may call it.
type listenFlags struct {
	Token     string   `env:"POMMEL_TOKEN" help:"Token that callers must send; needed for addresses beyond loopback. On the command line other users can see it: use POMMEL_TOKEN or --token-file."`
	TokenFile string   `type:"path" help:"File that holds the token."`
	TLSCert   string   `type:"path" help:"Certificate chain (PEM): serve HTTPS."`
	TLSKey    string   `type:"path" help:"Its private key (PEM)."`
	Host      []string `help:"More names under which callers without a token may address the server."`
	Training  []string `type:"path" placeholder:"FOLDER" help:"Folders of trainings for the dashboard: where pommel train --out wrote, or one above."`
	JSON      bool     `help:"Print one line of JSON with the address once the server is ready."`
}

func (c *listenFlags) validate() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return fmt.Errorf("--tls-cert and --tls-key need each other")
	case c.Token != "" && c.TokenFile != "":
		return fmt.Errorf("--token and --token-file are two ways to say one thing; give one")
	}
	return nil
}

// options reads what the flags point at, before anything costly is started.
func (c *listenFlags) options(addr string) (server.Options, error) {
	o := server.Options{Token: c.Token, Hosts: c.Host, Training: c.Training}
	if c.TokenFile != "" {
		data, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return o, usagef("--token-file: %w", err)
		}
		if o.Token = strings.TrimSpace(string(data)); o.Token == "" {
			return o, usagef("--token-file: %s is empty", c.TokenFile)
		}
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return o, usagef("--tls-cert, --tls-key: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if err := server.CheckAddr(addr, o.Token); err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// tracesIn is the folder that a flag names: "" is the default, "off" none.
func tracesIn(flag string) string {
	switch flag {
	case "":
		return gym.DefaultTraceDir()
	case "off":
		return ""
	}
	return flag
}

type serveCmd struct {
	worldFlags
	listenFlags
	Worlds    int           `default:"2" help:"How many episodes can run at the same time."`
	Addr      string        `default:"127.0.0.1:7777" help:"Where to listen: host:port, or unix:/path. Port 0 takes a free one."`
	Dashboard bool          `default:"true" negatable:"" help:"Show live and recorded episodes to people at /dashboard/."`
	Lease     time.Duration `default:"60s" help:"How long a caller may be silent before its world is given back."`
	Idle      time.Duration `default:"1h" help:"How long an OpenEnv socket may send nothing while its host still answers."`
	Drain     time.Duration `default:"10s" help:"How long running episodes may go on after an interrupt."`
	LogLevel  string        `enum:"debug,info,warn,error" default:"warn" help:"What to log to standard error: debug, info, warn, error. --log is debug."`
	LogFormat string        `enum:"text,json" default:"text" help:"How to log: text, or json, one object a line."`
}

func (c *serveCmd) Validate() error {
	switch {
	case c.Worlds < 1 || c.Lease < time.Second:
		return fmt.Errorf("--worlds takes 1 or more, --lease 1s or more")
	case c.Idle < time.Second:
		return fmt.Errorf("--idle takes 1s or more")
	}
	return c.listenFlags.validate()
}

func (c *serveCmd) Run(ctx context.Context, s *State) error {
	o, err := c.listenFlags.options(c.Addr)
	if err != nil {
		return err
	}
	o.Idle, o.Log, o.Traces, o.NoDashboard = c.Idle, c.logger(s), tracesIn(c.Traces), !c.Dashboard
	stop, err := c.trace(ctx, s, &o)
	if err != nil {
		return err
	}
	defer stop()
	g, err := c.openLogged(ctx, s, c.Worlds, o.Log)
	if err != nil {
		return err
	}
	defer g.Close()
	sessions := g.Sessions(gym.SessionLimits{Lease: c.Lease})
	defer sessions.Close()
	o.Drain = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, c.Drain)
		defer cancel()
		return sessions.Drain(ctx)
	}
	return server.New(sessions, o).ListenAndServe(ctx, c.Addr, func(address string) {
		d := g.Describe()
		if c.JSON {
			_ = json.NewEncoder(s.Stdout).Encode(map[string]any{
				"address": address, "world": d.World, "worlds": d.Worlds, "pommel": version.String(), "pid": os.Getpid(),
			})
			return
		}
		s.say("pommel %s serves world %s (%d worlds) on %s", version.String(), d.World, d.Worlds, address)
		if c.Dashboard && strings.HasPrefix(address, "http") {
			s.say("   dashboard: %s/", address)
		}
	})
}

// spanTime bounds how long the end of a server waits for a collector to take what is left.
const spanTime = 5 * time.Second

// trace has spans sent where the environment says, if it does.
func (c *serveCmd) trace(ctx context.Context, s *State, o *server.Options) (stop func(), err error) {
	if !spans.Enabled(s.Getenv) {
		return func() {}, nil
	}
	p, err := spans.Exporter(ctx)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("spans were not sent", "error", err) }))
	o.Tracer = p
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spanTime)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			o.Log.Warn("spans were not sent", "error", err)
		}
	}, nil
}

// logger writes to standard error, for people or for machines.
func (c *serveCmd) logger(s *State) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // the command line takes known names only
	if c.Log {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(s.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(s.Stderr, o))
}

// logger is a logger on standard error, or one that says nothing but warnings.
func (s *State) logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: level}))
}
