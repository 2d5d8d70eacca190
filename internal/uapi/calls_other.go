//go:build !amd64

package uapi

// SysTime is no call here.
const SysTime = -1
