//go:build !amd64

package sys

import (
	"errors"
	"time"
)

// ErrKVMSlow is for other processors' sake.
var ErrKVMSlow = errors.New("a virtual processor is emulated")

// TryKVM is not needed where there are no machines.
func TryKVM(string, time.Duration) error { return errors.ErrUnsupported }
