// Package image makes what a machine boots from: a kernel, a first file system in memory
// with this program as process 1, and read-only disks.
//
// A [Base] is made of Debian's packages, which are unpacked but not configured: no script of
// a package runs, so the same packages give the same bytes, and neither a network nor a
// clock gets into them. Everything is kept in a folder by what it is made from.
package image
