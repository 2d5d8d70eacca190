package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"

	"github.com/pommelgym/pommel/internal/fault"
)

// MinMajor is the oldest PostgreSQL that worlds run on: 15 was the first whose new
// databases keep strangers out of the public schema.
const MinMajor = 15

// Install is a set of PostgreSQL programs.
type Install struct {
	// BinDir holds initdb and postgres.
	BinDir string
	// Version is as the server says it, such as 15.10; Major its first number.
	Version string
	Major   int
}

// FindInstall finds PostgreSQL: the folder named by POMMEL_PG_BIN, else the newest that
// Debian's packages installed, else the one on PATH. getenv is os.Getenv outside tests.
func FindInstall(ctx context.Context, getenv func(string) string) (Install, error) {
	if dir := getenv("POMMEL_PG_BIN"); dir != "" {
		in, err := probeInstall(ctx, dir)
		if err != nil {
			return Install{}, fault.New(fault.Unsupported, "POMMEL_PG_BIN=%s: %v", dir, err).
				WithHint("set POMMEL_PG_BIN to the folder that holds initdb and postgres")
		}
		return in, nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	sort.Slice(dirs, func(i, j int) bool { return majorOf(dirs[i]) > majorOf(dirs[j]) })
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	var last error
	for _, dir := range dirs {
		in, err := probeInstall(ctx, dir)
		if err == nil {
			return in, nil
		}
		last = err
	}
	e := fault.New(fault.Unsupported, "PostgreSQL %d or newer was not found", MinMajor).
		WithHint("install it (Debian: apt-get install postgresql) or set POMMEL_PG_BIN to the folder that holds initdb and postgres")
	e.Err = last
	return Install{}, e
}

// majorOf reads the version out of /usr/lib/postgresql/15/bin.
func majorOf(binDir string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(binDir)))
	if err != nil {
		return 0
	}
	return n
}

var versionPattern = regexp.MustCompile(`PostgreSQL\) (\d+)([.\w]*)`)

func probeInstall(ctx context.Context, dir string) (Install, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Install{}, fmt.Errorf("find %s: %w", name, err)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Install{}, fmt.Errorf("ask postgres for its version: %w", err)
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return Install{}, fmt.Errorf("ask postgres for its version: unexpected answer %q", out)
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return Install{}, fmt.Errorf("ask postgres for its version: %w", err)
	}
	if major < MinMajor {
		return Install{}, fmt.Errorf("version %d in %s is too old: %d or newer is needed", major, dir, MinMajor)
	}
	return Install{BinDir: dir, Version: string(m[1]) + string(m[2]), Major: major}, nil
}

func (in Install) program(name string) string { return filepath.Join(in.BinDir, name) }
