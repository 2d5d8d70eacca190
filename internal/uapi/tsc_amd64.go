package uapi

// Ticks reads the processor's counter of ticks.
func Ticks() uint64
