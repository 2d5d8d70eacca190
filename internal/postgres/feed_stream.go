package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pommelgym/pommel/internal/fault"
)

const (
	startStream = `START_REPLICATION SLOT "` + feedName + `" LOGICAL 0/0 (proto_version '1', publication_names '` + feedName + `')`

	// askAgain is how long to wait before the server is asked again how far it is. It says
	// so of its own accord when it has caught up; the question is for when it had before.
	askAgain = 5 * time.Millisecond
	// slotPatience is how long to wait for a slot that another reader is about to leave.
	slotPatience = 5 * time.Second
	// maxMessage bounds one message: PostgreSQL's own limit of a value is 1 GiB.
	maxMessage = 1<<30 + 1<<20
)

// stream is a replication connection: the server decodes its log as it grows and sends the
// changes of each transaction when it commits, in a process that stays warm. Asking a
// function for the changes instead (pg_logical_slot_get_binary_changes) starts a decoding
// session each time, at some thirty times the cost.
//
// It reads the socket itself, since it must be able to forget half a message: see forget.
type stream struct {
	conn net.Conn
	buf  []byte
	// at is the first byte of buf that was not read yet.
	at int
	// sent is how far the server has decoded: everything committed before it has arrived.
	sent pglogrepl.LSN
	// fresh is set until the server has decoded more than it named at the start.
	fresh bool
}

// openStream starts to stream from the slot's place on.
func openStream(ctx context.Context, dsn string, dial Dialer) (*stream, error) {
	c, err := connectWith(ctx, dsn, map[string]string{
		"replication": "database",
		// Nothing may be due by the clock: a world stands still between two steps.
		"wal_sender_timeout": "0",
	}, dial)
	if err != nil {
		return nil, err
	}
	// From here on the socket is read here, and nothing may have been read ahead.
	if err := c.SyncConn(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	s := &stream{conn: h.Conn, fresh: true}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fault.Wrap(fault.WorldLost, err, "start the row-change feed"), s.conn.Close())
	}
	return s, nil
}

// start asks for the stream and waits for the server's agreement. A slot has one reader at a
// time, and the server notices only a little later that the one before has gone.
func (s *stream) start(ctx context.Context) error {
	const tryAgain = 10 * time.Millisecond
	end := time.Now().Add(slotPatience)
	for {
		err := s.tryStart(ctx)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(tryAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryStart leaves the connection ready for another try when it is refused.
func (s *stream) tryStart(ctx context.Context) error {
	q, err := (&pgproto3.Query{String: startStream}).Encode(nil)
	if err != nil {
		return err
	}
	if err := s.write(q); err != nil {
		return err
	}
	var refused error
	for {
		kind, body, err := s.next(ctx)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		case err != nil:
			return errors.Join(refused, err)
		case kind == 'W':
			return nil
		case kind == 'Z':
			return refused
		case kind == 'E':
			refused = s.message(kind, body, nil)
		default:
			if err := s.message(kind, body, nil); err != nil {
				return err
			}
		}
	}
}

// until reads on until everything that was committed before the target has arrived, and
// hands each message of the output plugin to take.
func (s *stream) until(ctx context.Context, target pglogrepl.LSN, take func([]byte) error) error {
	if s.sent == 0 {
		s.report(true)
	}
	for s.sent < target {
		kind, body, err := s.next(ctx)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
			s.report(true)
			continue
		case err != nil:
			return err
		}
		if err := s.message(kind, body, take); err != nil {
			return err
		}
	}
	// The server has caught up only as far as it was told of: this makes it say so again
	// when there is more.
	s.report(false)
	return nil
}

func (s *stream) message(kind byte, body []byte, take func([]byte) error) error {
	switch kind {
	case 'N', 'S':
		return nil
	case 'd':
	case 'E':
		var e pgproto3.ErrorResponse
		if err := e.Decode(body); err != nil {
			return err
		}
		return pgconn.ErrorResponseToPgError(&e)
	default:
		return fmt.Errorf("read the stream of row changes: unexpected message %q", kind)
	}
	if len(body) == 0 {
		return errors.New("read the stream of row changes: an empty message")
	}
	switch body[0] {
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(body[1:])
		if err != nil {
			return err
		}
		return take(x.WALData)
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(body[1:])
		if err != nil {
			return err
		}
		switch {
		case k.ServerWALEnd < s.sent && s.fresh:
			// A stream begins by naming the slot's place and then reads the log again from
			// some way before it, for transactions that were open there.
			return nil
		case s.sent != 0 && k.ServerWALEnd > s.sent:
			s.fresh = false
		case k.ServerWALEnd < s.sent:
			return fmt.Errorf("the server was put back from %s to %s, but the judge was not told", s.sent, k.ServerWALEnd)
		}
		s.sent = k.ServerWALEnd
	}
	return nil
}

// report tells the server how far the changes are taken care of, so that it can drop its
// log, and perhaps asks how far it is. A failure shows when the stream is read, which also
// tells the server's reason.
func (s *stream) report(ask bool) {
	msg := make([]byte, 0, 39)
	msg = append(msg, 'd', 0, 0, 0, 38, 'r')
	for range 3 {
		msg = binary.BigEndian.AppendUint64(msg, uint64(s.sent))
	}
	msg = binary.BigEndian.AppendUint64(msg, 0)
	if ask {
		msg = append(msg, 1)
	} else {
		msg = append(msg, 0)
	}
	_ = s.write(msg)
}

func (s *stream) write(msg []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	_, err := s.conn.Write(msg)
	return err
}

// next is the next message; its body is good until the call after. It waits for a short
// while only.
func (s *stream) next(ctx context.Context) (kind byte, body []byte, err error) {
	const header = 5
	if err := s.fill(ctx, header); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(s.buf[s.at+1:]))
	if n < 4 || n > maxMessage {
		return 0, nil, fmt.Errorf("read the stream of row changes: a message of %d bytes", n)
	}
	if err := s.fill(ctx, 1+n); err != nil {
		return 0, nil, err
	}
	kind, body = s.buf[s.at], s.buf[s.at+header:s.at+1+n]
	s.at += 1 + n
	return kind, body, nil
}

// fill reads until n bytes are there. What was read before a deadline is kept.
func (s *stream) fill(ctx context.Context, n int) error {
	if len(s.buf)-s.at >= n {
		return nil
	}
	s.buf = append(s.buf[:0], s.buf[s.at:]...)
	s.at = 0
	if err := s.conn.SetReadDeadline(time.Now().Add(askAgain)); err != nil {
		return err
	}
	for len(s.buf) < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if cap(s.buf)-len(s.buf) < 4096 {
			s.buf = append(make([]byte, 0, 2*cap(s.buf)+max(n, 64<<10)), s.buf...)
		}
		k, err := s.conn.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+k]
		if err != nil {
			return err
		}
	}
	return nil
}

// split takes the first message off bytes; n is 0 when it is not whole.
func split(b []byte) (kind byte, body []byte, n int) {
	const header = 5
	if len(b) < header {
		return 0, nil, 0
	}
	n = 1 + int(binary.BigEndian.Uint32(b[1:]))
	if n < header || n > len(b) {
		return 0, nil, 0
	}
	return b[0], b[header:n], n
}

// forget drops everything that has arrived, also half a message: the server was put back
// to a state in which it had sent nothing of it.
func (s *stream) forget() error {
	err := s.drain(func([]byte) {})
	s.buf, s.at, s.sent, s.fresh = s.buf[:0], 0, 0, false
	return err
}

// receive takes in what has arrived, without waiting.
func (s *stream) receive() error {
	return s.drain(func(b []byte) { s.buf = append(s.buf, b...) })
}

// drain reads the socket empty.
func (s *stream) drain(take func([]byte)) error {
	// A deadline that has passed would let nothing be read.
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, ok := s.conn.(syscall.Conn)
	if !ok {
		return errors.New("the stream of row changes is no socket")
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	scratch := make([]byte, 64<<10)
	var failed error
	err = rc.Read(func(fd uintptr) bool {
		for {
			switch n, err := syscall.Read(int(fd), scratch); {
			case err == syscall.EINTR:
			case err == syscall.EAGAIN:
				return true
			case err != nil:
				failed = err
				return true
			case n == 0:
				failed = errors.New("the server has closed the stream of row changes")
				return true
			default:
				take(scratch[:n])
			}
		}
	})
	return errors.Join(err, failed)
}
