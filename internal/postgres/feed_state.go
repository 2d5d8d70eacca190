package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pglogrepl"

	"github.com/pommelgym/pommel/internal/fault"
)

// ErrActive says that the application wrote while the server was being saved.
var ErrActive = errors.New("rows are being written")

// FeedState is the judge's side of the row-change feed at one moment. It is worth
// something only while the server is, or is put back, as it was then.
type FeedState struct {
	buf     []byte
	sent    pglogrepl.LSN
	fresh   bool
	seen    pglogrepl.LSN
	changes []Change
	commit  int

	relations map[uint32]*relation
	catalog   *catalog
	begun     bool
}

// State notes where the feed is. It is called while the judge is held, before the server
// is saved; Confirm is called after that.
func (j *Judge) State() (*FeedState, error) {
	f := j.feed
	if f.broken != nil {
		return nil, f.broken
	}
	s := f.stream
	return &FeedState{
		buf: slices.Clone(s.buf[s.at:]), sent: s.sent, fresh: s.fresh,
		seen: f.seen, changes: slices.Clone(f.changes), commit: f.commit,
		relations: maps.Clone(f.parser.relations), catalog: f.parser.catalog, begun: f.parser.begun,
	}, nil
}

// Confirm says whether a state belongs to the server as it was saved after it was noted:
// changes that were on their way then would be lost with it (ErrActive). What the server
// says of its place in the log may get lost: it says so again when asked.
func (j *Judge) Confirm(st *FeedState) error {
	s := j.feed.stream
	if err := s.receive(); err != nil {
		return fault.Wrap(fault.WorldLost, err, "read row changes")
	}
	rest := s.buf[s.at+len(st.buf):]
	if len(st.buf) > 0 && len(rest) > 0 {
		return ErrActive // the other half of something
	}
	for len(rest) > 0 {
		kind, body, n := split(rest)
		if n == 0 || kind != 'd' || len(body) == 0 || body[0] != pglogrepl.PrimaryKeepaliveMessageByteID {
			return ErrActive
		}
		rest = rest[n:]
	}
	return nil
}

// Restored is like Rewound for a server that was put back to a state that the feed knows.
func (j *Judge) Restored(ctx context.Context, st *FeedState) error {
	return j.feed.turn.do(ctx, func(context.Context) error {
		f := j.feed
		s := f.stream
		if err := s.forget(); err != nil {
			return fault.Wrap(fault.WorldLost, err, "put the row-change feed back")
		}
		s.buf = append(s.buf, st.buf...)
		s.sent, s.fresh = st.sent, st.fresh
		f.seen, f.changes, f.commit, f.broken = st.seen, slices.Clone(st.changes), st.commit, nil
		f.parser = newParser(f)
		f.parser.catalog, f.parser.begun = st.catalog, st.begun
		maps.Copy(f.parser.relations, st.relations)
		return nil
	})
}
