package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/cdp"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
	"github.com/pommelgym/pommel/internal/sys"
)

// Users inside a world. The ids are above those of ordinary hosts.
const (
	uidDB      = 62001
	uidApp     = 62002
	uidBrowser = 62003
)

// Places inside a world.
const (
	goldenDir  = "/cluster"
	dataHome   = "/var/lib/postgresql"
	dataDir    = dataHome + "/data"
	socketDir  = "/run/postgresql"
	profileDir = "/home/browser/profile"
	downloads  = "/home/browser/downloads"
	uploads    = "/srv/uploads"
	fontCache  = "/var/cache/fontconfig"
)

// startTimeout bounds a start as a whole, whatever the caller's context says.
const startTimeout = 3 * time.Minute

// rehearsedTimeout bounds a start in which services are rehearsed and started again by an
// emulated processor, on a host that may be busy.
const rehearsedTimeout = 8 * time.Minute

// Start brings a world up: database, services in order, browser with the start page
// loaded. An error names the service that failed and its last output; then nothing is
// left running. progress may be nil.
func Start(ctx context.Context, img *Image, progress func(stage string)) (_ *World, err error) {
	return start(ctx, img, progress, startOptions{})
}

type startOptions struct {
	background bool // leave the processor to running episodes where they want it
	warm       bool // prepare for a snapshot
	// room is memory for saved states beyond what the world may use: the keeper holds them, and
	// is held by the same limit.
	room int64
	// template, if given, is the machine that services run in.
	template *microvm.Template
	// rehearse, if given, is done with the services before they are started again.
	rehearse func(context.Context, *World) error
}

func start(ctx context.Context, img *Image, progress func(stage string), o startOptions) (_ *World, err error) {
	if progress == nil {
		progress = func(string) {}
	}
	limit := startTimeout
	if o.rehearse != nil {
		limit = rehearsedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w := newWorld(img)
	defer func() {
		if err != nil {
			_ = w.Close()
		}
	}()
	if w.box, err = sandbox.Start(ctx, o.sandbox(img)); err != nil {
		return nil, err
	}
	w.box.SetBackground(o.background)
	go w.watchBox()
	if err := w.boot(ctx, progress, o); err != nil {
		// A service that died during the boot is the better explanation.
		if cause := w.Cause(); cause != nil && ctx.Err() == nil {
			err = cause
		}
		return nil, fmt.Errorf("start world %s: %w", img.Spec.Name, err)
	}
	w.box.SetBackground(false)
	return w, nil
}

func sandboxConfig(img *Image, room int64) sandbox.Config {
	s := img.Spec
	cfg := sandbox.Config{
		Hostname: s.Name,
		Users: []sandbox.User{
			{Name: "db", UID: uidDB, Home: dataHome},
			{Name: "app", UID: uidApp, Home: "/home/app"},
			{Name: "browser", UID: uidBrowser, Home: "/home/browser"},
		},
		Binds: []sandbox.Bind{{From: img.out.Path, To: outDir}, {From: img.cluster.Path, To: goldenDir, Private: true}},
		Folders: []sandbox.Folder{
			{Path: socketDir, Mode: 0o700, UID: uidDB},
			{Path: downloads, Mode: 0o700, UID: uidBrowser},
		},
		// Files live in memory, which the limit bounds as a whole.
		FilesBytes: int64(s.Limits.Memory),
		Clock:      clockOf(s),
		Limits:     sandbox.Limits{MemoryBytes: int64(s.Limits.Memory) + room, Processes: s.Limits.Processes},
	}
	if dir := s.Browser.Uploads; dir != "" {
		cfg.Binds = append(cfg.Binds, sandbox.Bind{From: filepath.Join(s.Dir, dir), To: uploads})
	}
	for _, dir := range append(programDirs(img), fontCache) {
		if _, err := os.Stat(dir); err == nil {
			cfg.Binds = append(cfg.Binds, sandbox.Bind{From: dir, To: dir})
		}
	}
	return cfg
}

// programDirs are folders of programs outside those that every sandbox shows.
func programDirs(img *Image) []string {
	var out []string
	browserDir := filepath.Dir(img.chromium)
	if real, err := filepath.EvalSymlinks(img.chromium); err == nil {
		browserDir = filepath.Dir(real)
	}
	// PostgreSQL finds its libraries and templates beside its programs.
	for _, dir := range []string{browserDir, filepath.Dir(img.postgres.BinDir)} {
		if !strings.HasPrefix(dir, "/usr/") {
			out = append(out, dir)
		}
	}
	return out
}

// boot starts the browser beside the services: the two do not need each other until the
// start page is loaded.
func (w *World) boot(ctx context.Context, progress func(string), o startOptions) error {
	conn, err := w.launchBrowser(ctx)
	if err != nil {
		return err
	}
	opened := make(chan error, 1)
	go func() { opened <- w.openBrowser(ctx, conn) }()
	if o.template != nil {
		err = w.startMachine(ctx, progress, o.template)
	} else {
		err = w.startServices(ctx, progress)
	}
	if err != nil {
		_ = conn.Close() // ends the opening
		_ = <-opened     // it failed because of this one
		return err
	}
	progress("starting the browser")
	if err := <-opened; err != nil {
		return w.blame(browserName, err)
	}
	if o.rehearse != nil {
		progress("rehearsing")
		if err := w.rehearse(ctx, progress, o.rehearse); err != nil {
			return err
		}
	}
	if err := w.connectJudge(ctx); err != nil {
		return err
	}
	if w.odd, err = w.sameDraw(ctx); err != nil {
		return err
	}
	if o.warm {
		progress("warming up")
		if err := w.warmUp(ctx); err != nil {
			return w.blame(browserName, err)
		}
	}
	progress("loading the start page")
	if err := w.loadStartPage(ctx); err != nil {
		return w.blame(browserName, err)
	}
	if o.warm {
		if err := w.Browser().Collect(ctx); err != nil {
			return w.blame(browserName, err)
		}
	}
	return w.Check(ctx)
}

func (w *World) startServices(ctx context.Context, progress func(string)) error {
	vars := map[string]string{"out": outDir}
	for _, svc := range w.img.Spec.Services {
		progress("starting " + svc.Name)
		var err error
		if svc.Postgres != nil {
			for k, v := range dbVariables(svc, dbPassword) {
				vars[k] = v
			}
			err = w.startDatabase(ctx, svc)
		} else {
			err = w.startCommand(ctx, svc, vars)
		}
		if err != nil {
			return w.blame(svc.Name, err)
		}
	}
	return nil
}

func (w *World) startDatabase(ctx context.Context, svc Service) error {
	if err := w.box.Copy(ctx, goldenDir, dataDir, uidDB); err != nil {
		return err
	}
	proc, err := w.run(ctx, w.img.databaseProcess(svc, w.img.postgres))
	if err != nil {
		return err
	}
	return postgres.WaitReady(ctx, w.box.Path(dataDir), proc.Done())
}

func (i *Image) databaseProcess(svc Service, in postgres.Install) sandbox.Process {
	env := append(postgres.ServerEnv(), "HOME="+dataHome, opensslVariable+"="+plainOpenSSL)
	return sandbox.Process{
		SameAddresses: true, Pid: i.pidOf(svc.Name),
		Name: svc.Name, UID: uidDB, Dir: dataDir, Env: append(env, postgres.RandomEnv(dataDir)...),
		Argv: postgres.ServerArgv(in, dataDir, socketDir, "127.0.0.1", postgres.Port),
	}
}

func (w *World) startCommand(ctx context.Context, svc Service, vars map[string]string) error {
	p, probe, err := w.img.commandProcess(svc, vars)
	if err != nil {
		return err
	}
	proc, err := w.run(ctx, p)
	if err != nil {
		return err
	}
	return w.box.WaitReady(ctx, proc, probe)
}

// commandProcess is a service that is a command, and what tells that it is ready.
func (i *Image) commandProcess(svc Service, vars map[string]string) (p sandbox.Process, probe sandbox.Probe, err error) {
	argv, err := expandAll(svc.Command, vars)
	if err != nil {
		return p, probe, err
	}
	env := []string{"PATH=" + outDir + ":/usr/local/bin:/usr/bin:/bin", "HOME=/home/app", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"}
	if _, own := svc.Env[opensslVariable]; !own {
		env = append(env, opensslVariable+"="+plainOpenSSL)
	}
	keys := make([]string, 0, len(svc.Env))
	for k := range svc.Env {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		v, err := expandAll([]string{svc.Env[k]}, vars)
		if err != nil {
			return p, probe, err
		}
		env = append(env, k+"="+v[0])
	}
	p = sandbox.Process{Name: svc.Name, UID: uidApp, Dir: "/home/app", Env: env, Argv: argv, SameAddresses: true, Pid: i.pidOf(svc.Name)}
	probe = sandbox.Probe{HTTP: svc.Ready.HTTP, TCP: svc.Ready.TCP, Timeout: svc.Ready.Timeout}
	if len(svc.Ready.Command) > 0 {
		q := p
		q.Pid = 0 // what asks whether it is ready gets any
		if q.Argv, err = expandAll(svc.Ready.Command, vars); err != nil {
			return p, probe, err
		}
		probe.Command = &q
	}
	return p, probe, nil
}

// launchBrowser starts Chromium with its protocol on a pipe, whose other ends no process
// inside the world has.
func (w *World) launchBrowser(ctx context.Context) (*cdp.Conn, error) {
	b := w.img.Spec.Browser
	flags, err := browser.Flags(browser.FlagConfig{
		UserDataDir: profileDir, Width: b.Viewport.Width, Height: b.Viewport.Height, Scale: b.Scale, Locale: b.Locale, Allow: b.Allow,
	})
	if err != nil {
		return nil, err
	}
	toR, toW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("browser pipe: %w", err)
	}
	defer toR.Close()
	fromR, fromW, err := os.Pipe()
	if err != nil {
		_ = toW.Close()
		return nil, fmt.Errorf("browser pipe: %w", err)
	}
	defer fromW.Close()
	_, err = w.run(ctx, sandbox.Process{
		Name: browserName, UID: uidBrowser, Dir: "/home/browser", Argv: append([]string{w.img.chromium}, append(flags, "about:blank")...),
		Env:      []string{"PATH=/usr/bin:/bin", "HOME=/home/browser", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=" + b.Timezone},
		Landlock: w.browserLandlock(), RealRandom: true,
		// When memory runs out it is most likely the page that took it.
		OOMScore: 300,
	}, toR, fromW)
	if err != nil {
		return nil, errors.Join(err, toW.Close(), fromR.Close())
	}
	return cdp.New(toW, fromR), nil
}

// browserLandlock is what Chromium needs: programs, fonts, its profile, and the ports of
// the origins that pages may use. The application's files and the database are not among it.
func (w *World) browserLandlock() *sys.Landlock {
	l := &sys.Landlock{
		Read:  append(programDirs(w.img), "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/dev", fontCache, uploads),
		Write: []string{"/home/browser", "/tmp", "/dev/shm", "/dev/null"},
	}
	seen := map[uint16]bool{}
	for _, o := range w.img.Spec.Browser.Allow {
		if port, err := originPort(o); err == nil && !seen[port] {
			seen[port] = true
			l.ConnectTCP = append(l.ConnectTCP, port)
		}
	}
	return l
}

func (w *World) openBrowser(ctx context.Context, conn *cdp.Conn) error {
	s := w.img.Spec
	folder := ""
	if s.Browser.Uploads != "" {
		folder = uploads
	}
	b, err := browser.Open(ctx, conn, browser.Config{
		Scale: s.Browser.Scale, UploadDir: folder,
		Epoch: s.Clock, Width: s.Browser.Viewport.Width, Height: s.Browser.Viewport.Height,
		Locale: s.Browser.Locale, Timezone: s.Browser.Timezone, Allow: s.Browser.Allow, DownloadDir: downloads,
	})
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	w.setBrowser(b, conn)
	return nil
}

func (w *World) connectJudge(ctx context.Context) (err error) {
	db, _ := w.img.Spec.database()
	dsn := func(role string) string { return postgres.SocketDSN(w.box.Path(socketDir), role, db.Postgres.Database) }
	var dial postgres.Dialer
	if w.vm != nil {
		dial = w.vm.m.Dial
	}
	if w.judge, err = postgres.OpenJudgeVia(ctx, dsn(postgres.JudgeRole), dial); err != nil {
		return w.blame(db.Name, err)
	}
	if w.setup, err = postgres.OpenSetupVia(ctx, dsn(db.Postgres.Role), dial); err != nil {
		return w.blame(db.Name, err)
	}
	return nil
}

// blame names the service and shows its last output.
func (w *World) blame(service string, err error) error {
	kind := fault.WorldLost
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		kind = f.Kind
	case errors.Is(err, context.Canceled):
		kind = fault.Canceled
	}
	if p := w.proc(service); p != nil && p.Log() != "" {
		err = fmt.Errorf("%w\nlast output of %s:\n%s", err, service, tail(p.Log(), logLines))
	}
	return &fault.Error{Kind: kind, Msg: "service " + service, Hint: fault.HintOf(err), Err: err}
}

// logLines is how much of a service's output an error shows.
const logLines = 15

// startPageTries is how often the start page is asked for: an application that is emulated for the first
// time may miss deadlines of its own, and its apology is no page to begin episodes with.
const startPageTries = 3

// loadStartPage leaves the browser where an agent without a task would begin.
func (w *World) loadStartPage(ctx context.Context) error {
	for try := 1; ; try++ {
		err := w.tryStartPage(ctx)
		if err == nil || try == startPageTries || w.Cause() != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (w *World) tryStartPage(ctx context.Context) error {
	b, url := w.Browser(), w.img.Spec.Browser.StartURL
	if err := b.SetEpisode(ctx, 0, w.img.Spec.Clock); err != nil {
		return err
	}
	if err := b.Navigate(ctx, url); err != nil {
		return err
	}
	status, err := b.Answered(ctx)
	if err == nil && status >= http.StatusInternalServerError {
		err = fault.New(fault.WorldLost, "%s was answered with status %d", url, status)
	}
	return err
}
