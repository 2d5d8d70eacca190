package postgres

import (
	"context"
	"maps"
	"net"
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

// turn lets one call at a time use a connection.
//
// A caller who gives up gets his error at once, but his call runs on until the server
// answers. Giving up on the connection instead would lose the world, since no other can be
// opened after its snapshot; and a cancel request, which travels on a connection of its own,
// may arrive late and hit the next call.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// do runs work when it is the caller's turn. When do returns an error because the caller
// gave up, work may still be running: the caller must not look at what it writes.
func (t turn) do(ctx context.Context, work func(context.Context) error) error {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return gaveUp(ctx)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-t }()
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

// line is a connection for statements.
type line struct {
	turn
	conn *pgconn.PgConn
}

func openLine(ctx context.Context, dsn string, params map[string]string, dial Dialer) (*line, error) {
	conn, err := connectWith(ctx, dsn, params, dial)
	if err != nil {
		return nil, err
	}
	return &line{turn: newTurn(), conn: conn}, nil
}

// connectWith connects with the settings of every session of Pommel's and some more.
func connectWith(ctx context.Context, dsn string, params map[string]string, dial Dialer) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the address of the database")
	}
	maps.Copy(cfg.RuntimeParams, session)
	maps.Copy(cfg.RuntimeParams, params)
	if dial != nil {
		cfg.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fault.Wrap(fault.WorldLost, err, "connect to the database")
	}
	return conn, nil
}

// close ends the connection, also under a call that still runs. The server may be gone
// already; what counts is that the socket is.
func (l *line) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		_ = l.conn.Close(ctx)
	case <-ctx.Done():
		_ = l.conn.Conn().Close()
	}
}
