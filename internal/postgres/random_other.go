//go:build !amd64

package postgres

import "debug/elf"

const randomMachine = elf.EM_NONE

// randomCode is written for amd64 alone, as the world's clock is.
var randomCode []byte
