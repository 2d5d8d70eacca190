package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/sys"
)

// format is raised when images are made differently.
const format = 2

// keepBases and keepDisks are how many of each the cache keeps.
const (
	keepBases = 6
	keepDisks = 24
)

// Suite is the release of Debian that machines run.
const Suite = "bookworm"

// basePackages are in every machine, with what they depend on: the kernel, and enough of a
// system for services that are shell scripts. bash and dash are there because both are "sh" to somebody.
var basePackages = []string{
	"base-files", "bash", "coreutils", "dash", "findutils", "grep", "hostname", "libc-bin", "linux-image-cloud-amd64",
	"mawk", "ncurses-base", "procps", "sed", "tzdata", "util-linux",
}

// Base is a kernel and a root file system.
type Base struct {
	Key      string    `json:"-"`
	Packages []Package `json:"packages"`
	// Kernel, Root and Modules are files of the cache: an ELF kernel, an EROFS image, a folder.
	Kernel  string `json:"-"`
	Root    string `json:"-"`
	Modules string `json:"-"`
	// Release is the kernel's, as uname says it.
	Release string `json:"release"`
	// Digest names the bytes of kernel and root.
	Digest string `json:"digest"`

	entry *sys.Entry
}

// Package is one of Debian's packages in a base.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Names of the files of a base.
const (
	kernelFile = "vmlinux"
	rootFile   = "root.erofs"
	modulesDir = "modules"
	aboutFile  = "about.json"
)

// BuildBase makes the base that has these packages too, or takes it from the cache.
func BuildBase(ctx context.Context, cache string, packages []string, progress func(string)) (*Base, error) {
	want := slices.Concat(basePackages, packages)
	slices.Sort(want)
	want = slices.Compact(want)
	key, err := keyOf([]any{format, Suite, want})
	if err != nil {
		return nil, err
	}
	entry, err := sys.Store{Dir: filepath.Join(cache, "bases"), Keep: keepBases}.Get(ctx, key, func(ctx context.Context, folder string) error {
		return makeBase(ctx, folder, want, progress)
	})
	if err != nil {
		return nil, fmt.Errorf("build the machine's base: %w", err)
	}
	b := &Base{Key: key, entry: entry, Kernel: filepath.Join(entry.Path, kernelFile), Root: filepath.Join(entry.Path, rootFile), Modules: filepath.Join(entry.Path, modulesDir)}
	about, err := os.ReadFile(filepath.Join(entry.Path, aboutFile))
	if err == nil {
		err = json.Unmarshal(about, b)
	}
	if err != nil {
		return nil, fmt.Errorf("read about the machine's base: %w", err)
	}
	return b, nil
}

func makeBase(ctx context.Context, folder string, packages []string, progress func(string)) error {
	if err := tools(); err != nil {
		return err
	}
	// Beside the entry, on the same file system, where there is room.
	root := filepath.Join(folder, "tree")
	defer os.RemoveAll(root)
	progress("unpacking Debian's packages (once: a minute or two)")
	if err := unpack(ctx, root, packages); err != nil {
		return err
	}
	b := &Base{}
	var err error
	if b.Packages, err = unpacked(root); err != nil {
		return err
	}
	progress("taking the kernel out")
	if b.Release, err = takeKernel(root, folder); err != nil {
		return err
	}
	progress("making the root file system")
	if err := tidy(ctx, root); err != nil {
		return err
	}
	if err := makeErofs(ctx, root, filepath.Join(folder, rootFile), RootID); err != nil {
		return err
	}
	if b.Digest, err = digest(filepath.Join(folder, kernelFile), filepath.Join(folder, rootFile)); err != nil {
		return err
	}
	about, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("tell about the base: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, aboutFile), about, 0o644)
}

// tools says what is missing on this host.
func tools() error {
	var missing []string
	for program, pkg := range map[string]string{"mmdebstrap": "mmdebstrap", "mkfs.erofs": "erofs-utils"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fault.New(fault.Unsupported, "machines cannot be built here: %s is missing", strings.Join(missing, ", ")).
		WithHint("apt-get install %s", strings.Join(missing, " "))
}

func unpack(ctx context.Context, root string, packages []string) error {
	argv := []string{
		"mmdebstrap", "--mode=root", "--variant=extract", "--include=" + strings.Join(packages, ","),
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", `--aptopt=APT::Install-Recommends "false"`, `--aptopt=Acquire::Languages "none"`,
		"--dpkgopt=force-unsafe-io", Suite, root,
	}
	return run(ctx, argv, append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch))
}

// epoch is the time of modification of everything in a file system.
const epoch = "1704067200"

// run runs a program of the host and explains its failure by its last output.
func run(ctx context.Context, argv, env []string) error {
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second // mmdebstrap clears away what it mounted
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", argv[0], context.Cause(ctx))
		}
		return fault.New(fault.Unsupported, "%s: %v\n%s", argv[0], err, tail(log.String(), 15)).
			WithHint("Debian's packages are needed once; see that apt-get works on this host")
	}
	return nil
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// unpacked lists the packages: what is only unpacked is not in dpkg's status, but each
// archive that was unpacked is in the list of files that it brought.
func unpacked(root string) ([]Package, error) {
	dirs, err := os.ReadDir(filepath.Join(root, "usr/share/doc"))
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var out []Package
	for _, d := range dirs {
		if v := versionOf(filepath.Join(root, "usr/share/doc", d.Name())); v != "" {
			out = append(out, Package{d.Name(), v})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("list packages: none was unpacked")
	}
	return out, nil
}

func keyOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("name by content: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
