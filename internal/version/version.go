// Package version says which Pommel this is.
package version

import "runtime/debug"

// version is set by the linker.
var version string

// String is the version: the one that the build was given, else the module's, else "dev".
func String() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "dev"
}
