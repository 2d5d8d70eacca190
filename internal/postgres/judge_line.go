package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/fault"
)

const (
	// statementTimeout ends a query of a task that never ends.
	statementTimeout = 10 * time.Second
	// answerTimeout is how long the server may be silent before it counts as lost.
	answerTimeout = statementTimeout + 5*time.Second
	// closeGrace is how long saying goodbye to the server may take.
	closeGrace = time.Second
)

// line is a connection that serves one call at a time.
//
// A caller who gives up gets his error at once, but his call runs on until the server
// answers. Giving up on the connection instead would lose the world, since no other can be
// opened after its snapshot; and a cancel request, which travels on a connection of its own,
// may arrive late and hit the next call.
type line struct {
	busy chan struct{}
	conn *pgconn.PgConn
}

func openLine(ctx context.Context, dsn string, params map[string]string) (*line, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the address of the database")
	}
	for _, m := range []map[string]string{session, params} {
		for k, v := range m {
			cfg.RuntimeParams[k] = v
		}
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fault.Wrap(fault.WorldLost, err, "connect to the database")
	}
	return &line{busy: make(chan struct{}, 1), conn: conn}, nil
}

// do runs work when the line is free. When do returns an error because the caller gave up,
// work may still be running: the caller must not look at what it writes.
func (l *line) do(ctx context.Context, work func(context.Context) error) error {
	select {
	case l.busy <- struct{}{}:
	case <-ctx.Done():
		return gaveUp(ctx)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-l.busy }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		done <- work(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return gaveUp(ctx)
	}
}

func gaveUp(ctx context.Context) error {
	return fault.Wrap(fault.Canceled, context.Cause(ctx), "query the database")
}

// close ends the connection, also under a call that still runs. The server may be gone
// already; what counts is that the socket is.
func (l *line) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
		_ = l.conn.Close(ctx)
	case <-ctx.Done():
		_ = l.conn.Conn().Close()
	}
}
