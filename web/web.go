// Package web holds the files of the dashboard's pages. They are plain modules and need
// no build step and no network.
package web

import "embed"

// Files are the pages, as they stand in this folder.
//
//go:embed index.html *.css *.js *.svg
var Files embed.FS
