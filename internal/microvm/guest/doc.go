// Package guest is process 1 of a machine: it mounts the disks, brings up the network, has
// the world's services started in a sandbox of their own, as they would be on the host, and
// answers the world over the machine's serial device.
//
// A program that may be put into a machine calls [MaybeInit] first thing in main, after
// sandbox.MaybeKeeper (a test binary in TestMain).
package guest
