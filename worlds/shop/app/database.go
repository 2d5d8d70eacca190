package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	poolSize = 4
	forever  = 50 * 365 * 24 * time.Hour
)

// openDatabase opens all connections, one after the other, and keeps them: they are never aged
// out, checked in the background or replaced, so the set of sockets is the same
// before and after the process is put back in time.
func openDatabase(ctx context.Context, url string) (*pgxpool.Pool, error) {
	if url == "" {
		return nil, errors.New("DATABASE_URL is not set")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	// Without a minimum: the pool would open that many side by side, and which connection
	// then serves a request, and draws its tokens, would be a matter of chance.
	config.MinConns, config.MaxConns = 0, poolSize
	config.MaxConnLifetime, config.MaxConnIdleTime, config.HealthCheckPeriod = forever, forever, forever
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["application_name"] = "shop"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	var held []*pgxpool.Conn
	for range poolSize {
		c, acquireErr := pool.Acquire(ctx)
		if acquireErr != nil {
			err = fmt.Errorf("connect to the database: %w", acquireErr)
			break
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Release()
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// many reads all rows into structs, columns to fields by name.
func many[T any](ctx context.Context, q querier, sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// one reads the only row into a struct; no row is errNotFound.
func one[T any](ctx context.Context, q querier, sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[T])
	return v, noRow(err)
}

// scalar reads the only value; no row is errNotFound.
func scalar[T any](ctx context.Context, q querier, sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectOneRow(rows, pgx.RowTo[T])
	return v, noRow(err)
}

func noRow(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errNotFound
	}
	return err
}

// violates says whether err is the violation of the named constraint.
func violates(err error, constraint string) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && p.ConstraintName == constraint
}

// notText says whether the database refused a value that is no text: a zero byte or bad UTF-8.
func notText(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && p.Code == "22021"
}
