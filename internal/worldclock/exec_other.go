//go:build !amd64

package worldclock

import "errors"

// goneError says that a process ended meanwhile.
type goneError struct{ pid, status int }

func (*goneError) Error() string { return errGone.Error() }

var errGone = errors.New("the process has ended")

func (s *Supervisor) equip(r *request) error { return r.goOn() }

const supported = false
