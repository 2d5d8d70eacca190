package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pommelgym/pommel/internal/fault"
)

// SetupConn is a connection as the application's role that applies a task's setup.
// Like the judge's it keeps nothing on the server between two calls.
type SetupConn struct {
	mu   sync.Mutex
	conn *pgconn.PgConn
}

var _ Writer = (*SetupConn)(nil)

// OpenSetup connects as the application's role.
func OpenSetup(ctx context.Context, dsn string) (*SetupConn, error) {
	conn, err := openConn(ctx, dsn, map[string]string{"statement_timeout": fmt.Sprint(statementTimeout.Milliseconds())})
	if err != nil {
		return nil, fault.Wrap(fault.WorldLost, err, "connect as the application")
	}
	return &SetupConn{conn: conn}, nil
}

// Exec runs one statement.
func (s *SetupConn) Exec(ctx context.Context, sql string, args ...any) error {
	err := s.ExecAll(ctx, []Statement{{SQL: sql, Args: args}})
	var se *StatementError
	if errors.As(err, &se) {
		return se.Err
	}
	return err
}

// ExecAll runs statements in one transaction: all of them or none.
func (s *SetupConn) ExecAll(ctx context.Context, statements []Statement) error {
	if len(statements) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := queryAll(ctx, s.conn, statements)
	return err
}

// Close ends the connection.
func (s *SetupConn) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return closeConn(ctx, s.conn)
}
