package postgres

import (
	"context"
	"fmt"
)

// SetupConn is a connection as the application's role that applies a task's setup.
// Like the judge's it keeps nothing on the server between two calls.
type SetupConn struct {
	line *line
}

var _ Writer = (*SetupConn)(nil)

// OpenSetup connects as the application's role.
func OpenSetup(ctx context.Context, dsn string) (*SetupConn, error) {
	return OpenSetupVia(ctx, dsn, nil)
}

// OpenSetupVia is OpenSetup over a connection of a dialer.
func OpenSetupVia(ctx context.Context, dsn string, dial Dialer) (*SetupConn, error) {
	l, err := openLine(ctx, dsn, map[string]string{"statement_timeout": fmt.Sprint(statementTimeout.Milliseconds())}, dial)
	if err != nil {
		return nil, err
	}
	return &SetupConn{line: l}, nil
}

// Exec runs one statement.
func (s *SetupConn) Exec(ctx context.Context, sql string, args ...any) error {
	return onlyStatement(s.ExecAll(ctx, []Statement{{SQL: sql, Args: args}}))
}

// ExecAll runs statements in one round trip and one transaction: all of them or none.
func (s *SetupConn) ExecAll(ctx context.Context, statements []Statement) error {
	if len(statements) == 0 {
		return nil
	}
	return s.line.do(ctx, func(ctx context.Context) error {
		_, err := queryAll(ctx, s.line.conn, statements)
		return err
	})
}

// Close ends the connection.
func (s *SetupConn) Close(ctx context.Context) error {
	s.line.close(ctx)
	return nil
}
