package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sys"
)

// imageFormat is raised when images are made differently.
const imageFormat = 1

// dbPassword is known to the application alone. It is a fixed text because a database must
// have the same bytes wherever it is made, and because the role it opens is the
// application's own, reachable only on the loopback of one world.
const dbPassword = "application"

// Image is what worlds are started from: the application's files and a golden database.
// It is read-only and may be shared by any number of worlds and processes.
type Image struct {
	Spec *Spec

	id       string
	dir      string
	out      *sys.Entry // built files
	cluster  *sys.Entry // golden data folder
	postgres postgres.Install
	chromium string
	// chromiumVersion is what the program says, such as "Chromium 156.0.1".
	chromiumVersion string

	draws draws
	vm    templates
}

// ID names the content of the image: equal ids, equal worlds.
func (i *Image) ID() string { return i.id }

// Dir is a folder that belongs to the image, for what is known about it.
func (i *Image) Dir() string { return i.dir }

// BuildImage builds what the world consists of, or takes it from the cache. Any number of
// processes may do so at once. progress may be nil.
func BuildImage(ctx context.Context, s *Spec, progress func(stage string)) (*Image, error) {
	if progress == nil {
		progress = func(string) {}
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	img := &Image{Spec: s}
	if img.postgres, err = postgres.FindInstall(ctx, os.Getenv); err != nil {
		return nil, err
	}
	if img.chromium, err = browser.FindChromium(); err != nil {
		return nil, err
	}
	if img.chromiumVersion, err = chromiumVersion(ctx, img.chromium, filepath.Join(cache, "programs")); err != nil {
		return nil, err
	}
	if img.out, err = buildFiles(ctx, s, filepath.Join(cache, "builds"), progress); err != nil {
		return nil, err
	}
	spec, err := clusterSpec(s)
	if err != nil {
		return nil, err
	}
	progress("making the database")
	if img.cluster, err = postgres.Golden(ctx, img.postgres, spec, filepath.Join(cache, "clusters")); err != nil {
		return nil, fmt.Errorf("make the database of world %s: %w", s.Name, err)
	}
	if img.id, err = imageID(s, img); err != nil {
		return nil, err
	}
	img.dir = filepath.Join(cache, "images", img.id)
	if err := os.MkdirAll(img.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make image folder: %w", err)
	}
	return img, nil
}

// imageID names all that a world's behaviour comes from.
func imageID(s *Spec, img *Image) (string, error) {
	file, err := os.ReadFile(filepath.Join(s.Dir, FileName))
	if err != nil {
		return "", fmt.Errorf("name image: %w", err)
	}
	uploads := ""
	if dir := s.Browser.Uploads; dir != "" {
		if uploads, err = hashInputs(s.Dir, []string{dir}); err != nil {
			return "", fmt.Errorf("name image: %w", err)
		}
	}
	return hashOf([]any{imageFormat, string(file), uploads, filepath.Base(img.out.Path), filepath.Base(img.cluster.Path), img.chromiumVersion})
}

// chromiumVersion asks the browser once; starting it costs a tenth of a second each time.
func chromiumVersion(ctx context.Context, path, cache string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find the browser: %w", err)
	}
	key, err := hashOf([]any{path, info.Size(), info.ModTime().UnixNano()})
	if err != nil {
		return "", err
	}
	known := filepath.Join(cache, key)
	if text, err := os.ReadFile(known); err == nil && len(text) > 0 {
		return string(text), nil
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fault.New(fault.Unsupported, "%s --version: %v", path, err).WithHint("install the libraries it needs, or another build")
	}
	version := strings.TrimSpace(string(out))
	// Only a saving of time: without the file the browser is asked again.
	if err := os.MkdirAll(cache, 0o755); err == nil {
		_ = os.WriteFile(known, []byte(version), 0o644)
	}
	return version, nil
}

func clusterSpec(s *Spec) (postgres.Spec, error) {
	db, _ := s.database()
	spec := postgres.Spec{
		Database: db.Postgres.Database, Role: db.Postgres.Role, Password: dbPassword, Settings: db.Postgres.Settings,
	}
	for _, name := range db.Postgres.Init {
		path := filepath.Join(s.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return spec, fmt.Errorf("read init script: %w", err)
		}
		spec.Init = append(spec.Init, postgres.SQLFile{Name: name, Content: string(text)})
	}
	return spec, nil
}

// keepBuilds is how many built applications the cache keeps.
const keepBuilds = 16

// buildFiles runs the build, if the world has one, and returns what it made.
func buildFiles(ctx context.Context, s *Spec, cache string, progress func(string)) (*sys.Entry, error) {
	key, err := buildKey(s)
	if err != nil {
		return nil, err
	}
	return sys.Store{Dir: cache, Keep: keepBuilds}.Get(ctx, key, func(ctx context.Context, folder string) error {
		if s.Build != nil {
			progress("building the application")
			if err := runBuild(ctx, s, folder); err != nil {
				return err
			}
		}
		if err := makeReadable(folder); err != nil {
			return fmt.Errorf("build cache: %w", err)
		}
		return nil
	})
}

func buildKey(s *Spec) (string, error) {
	if s.Build == nil {
		return hashOf("nothing built")
	}
	content, err := hashInputs(s.Dir, s.Build.Inputs)
	if err != nil {
		return "", err
	}
	return hashOf([]any{imageFormat, s.Build.Command, s.Build.Dir, content})
}

func runBuild(ctx context.Context, s *Spec, out string) error {
	argv, err := expandAll(s.Build.Command, map[string]string{"out": out})
	if err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(s.Dir, s.Build.Dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	// Compilers run compilers: all of them end when the build is given up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build of world %s: %w", s.Name, ctx.Err())
		}
		pos := s.file.Pos("build.command")
		return fault.New(fault.InvalidArgument, "%s:%d:%d: build.command: %v\n%s", s.file.Path, pos.Line, pos.Col, err, tail(log.String(), 40))
	}
	return nil
}
