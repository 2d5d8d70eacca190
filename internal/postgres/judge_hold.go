package postgres

import "context"

// Hold waits until no call is under way, and keeps new ones waiting until release is
// called. Meanwhile nothing is asked of the server, so that it may be saved or put back.
func (j *Judge) Hold(ctx context.Context) (release func(), err error) {
	return holdAll(ctx, j.feed.turn, j.queries.turn)
}

// Hold is like that of the Judge.
func (s *SetupConn) Hold(ctx context.Context) (release func(), err error) {
	return holdAll(ctx, s.line.turn)
}

// holdAll takes several turns, in the order in which calls take them.
func holdAll(ctx context.Context, turns ...turn) (release func(), err error) {
	held := 0
	release = func() {
		for _, t := range turns[:held] {
			<-t
		}
	}
	for _, t := range turns {
		select {
		case t <- struct{}{}:
			held++
		case <-ctx.Done():
			release()
			return nil, gaveUp(ctx)
		}
	}
	return release, nil
}
