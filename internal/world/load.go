package world

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/yamlfile"
)

// FileName is the name of a world's file in its folder.
const FileName = "world.yaml"

const (
	defaultReadyTimeout = 30 * time.Second
	defaultMemory       = Bytes(2 << 30)
	minMemory           = Bytes(256 << 20)
	defaultProcesses    = 512
	defaultMachine      = Bytes(384 << 20)
	minMachine          = Bytes(256 << 20)
	minProcesses        = 96
)

// Load reads and checks the world.yaml of a folder. Its errors name file, line and column.
func Load(dir string) (*Spec, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "%s: there is no %s", dir, FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("load world: %w", err)
	}
	spec, err := parse(path, data)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "world file")
	}
	return spec, nil
}

func parse(path string, data []byte) (*Spec, error) {
	f, err := yamlfile.Parse(path, data)
	if err != nil {
		return nil, err
	}
	s := &Spec{Dir: filepath.Dir(path), file: f}
	if err := f.Decode(s); err != nil {
		return nil, err
	}
	s.setDefaults()
	c := &checker{spec: s, file: f}
	c.check()
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return s, nil
}

func (s *Spec) setDefaults() {
	if s.Title == "" {
		s.Title = s.Name
	}
	if s.Clock.IsZero() {
		s.Clock = time.Date(2025, 1, 1, 9, 0, 0, 0, time.UTC)
	}
	if s.Tasks == "" {
		s.Tasks = "tasks"
	}
	for i := range s.Services {
		if r := s.Services[i].Ready; r != nil && r.Timeout == 0 {
			r.Timeout = defaultReadyTimeout
		}
	}
	b := &s.Browser
	if b.Viewport == (Viewport{}) {
		b.Viewport = Viewport{1280, 720}
	}
	if b.Scale == 0 {
		b.Scale = 1
	}
	if b.Locale == "" {
		b.Locale = "en-US"
	}
	if b.Timezone == "" {
		b.Timezone = "UTC"
	}
	if len(b.Allow) == 0 {
		if u, err := url.Parse(b.StartURL); err == nil && u.Host != "" {
			b.Allow = []string{u.Scheme + "://" + u.Host}
		}
	}
	if s.Limits.Memory == 0 {
		s.Limits.Memory = defaultMemory
	}
	if s.Limits.Processes == 0 {
		s.Limits.Processes = defaultProcesses
	}
	if s.Machine.Memory == 0 {
		s.Machine.Memory = defaultMachine
	}
}

// checker looks for what is well-formed but cannot work.
type checker struct {
	spec *Spec
	file *yamlfile.File
	errs yamlfile.Errors
}

func (c *checker) fail(path, format string, args ...any) {
	c.errs = append(c.errs, c.file.Errorf(path, format, args...))
}

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	identPattern  = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	envPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	debianPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	localePattern = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
)

func (c *checker) check() {
	s := c.spec
	if !namePattern.MatchString(s.Name) {
		c.fail("name", "a name is lower-case letters, digits and hyphens, a letter first; got %q", s.Name)
	}
	if s.Build != nil {
		c.build(s.Build)
	}
	c.services()
	c.browser(s.Browser)
	if s.Limits.Memory < minMemory {
		c.fail("limits.memory", "a browser and a database need at least %v, got %v", minMemory, s.Limits.Memory)
	}
	if s.Limits.Processes < minProcesses {
		c.fail("limits.processes", "processes and threads together; at least %d are needed, got %d", minProcesses, s.Limits.Processes)
	}
	c.machine()
	if c.file.Node("tasks") != nil {
		c.inside("tasks", s.Tasks, true)
	}
}

func (c *checker) machine() {
	var names []string
	for _, d := range Drivers() {
		names = append(names, d.Name())
	}
	if d := c.spec.Driver; d != "" && !slices.Contains(names, d) {
		c.fail("driver", "expected one of %s, got %q", strings.Join(names, ", "), d)
	}
	m := c.spec.Machine
	if m.Memory < minMachine || m.Memory%(1<<20) != 0 {
		c.fail("machine.memory", "a kernel and a database need at least %v, in whole MiB; got %v", minMachine, m.Memory)
	}
	for i, p := range m.Packages {
		if !debianPattern.MatchString(p) {
			c.fail(fmt.Sprintf("machine.packages[%d]", i), "expected the name of a Debian package, got %q", p)
		}
	}
}

func (c *checker) build(b *Build) {
	if len(b.Command) == 0 {
		c.fail("build.command", "the command is empty")
	}
	if len(b.Inputs) == 0 {
		c.fail("build.inputs", "name the files and folders that the build depends on")
	}
	c.inside("build.dir", b.Dir, true)
	for i, in := range b.Inputs {
		c.inside(fmt.Sprintf("build.inputs[%d]", i), in, false)
	}
	for i, arg := range b.Command {
		c.variables(fmt.Sprintf("build.command[%d]", i), arg, []string{"out"})
	}
}

// inside checks a path relative to the world's folder.
func (c *checker) inside(at, path string, folder bool) {
	if path == "" {
		return
	}
	if !filepath.IsLocal(path) {
		c.fail(at, "the path must stay within the world's folder, got %q", path)
		return
	}
	info, err := os.Stat(filepath.Join(c.spec.Dir, path))
	switch {
	case err != nil:
		c.fail(at, "there is no %s in the world's folder", path)
	case folder && !info.IsDir():
		c.fail(at, "%s is not a folder", path)
	}
}

func (c *checker) services() {
	seen, databases := map[string]bool{}, 0
	vars := []string{}
	if c.spec.Build != nil {
		vars = append(vars, "out")
	}
	for i, svc := range c.spec.Services {
		at := fmt.Sprintf("services[%d]", i)
		switch {
		case !namePattern.MatchString(svc.Name):
			c.fail(at+".name", "a name is lower-case letters, digits and hyphens, a letter first; got %q", svc.Name)
		case seen[svc.Name] || svc.Name == browserName:
			c.fail(at+".name", "the name %q is taken", svc.Name)
		}
		seen[svc.Name] = true
		switch {
		case svc.Postgres != nil && len(svc.Command) > 0:
			c.fail(at, "a service has postgres or command, not both")
		case svc.Postgres != nil:
			databases++
			c.postgres(at, svc)
			for v := range dbVariables(svc, "") {
				vars = append(vars, v)
			}
			sort.Strings(vars)
		case len(svc.Command) == 0:
			c.fail(at, "a service needs postgres or a command")
		default:
			c.command(at, svc, vars)
		}
	}
	if databases != 1 {
		c.fail("services", "a world has exactly one postgres service, which the judge reads; found %d", databases)
	}
}

func (c *checker) postgres(at string, svc Service) {
	pg := svc.Postgres
	if svc.Ready != nil || len(svc.Env) > 0 {
		c.fail(at, "a postgres service takes neither ready nor env")
	}
	for field, v := range map[string]string{"database": pg.Database, "role": pg.Role} {
		if !identPattern.MatchString(v) {
			c.fail(at+".postgres."+field, "expected lower-case letters, digits and underscores, got %q", v)
		}
	}
	for i, f := range pg.Init {
		c.inside(fmt.Sprintf("%s.postgres.init[%d]", at, i), f, false)
	}
	for key := range pg.Settings {
		if err := postgres.CheckSetting(key); err != nil {
			var f *fault.Error
			if errors.As(err, &f) {
				c.fail(at+".postgres.settings."+key, "%s", f.Msg)
			}
		}
	}
}

func (c *checker) command(at string, svc Service, vars []string) {
	for i, arg := range svc.Command {
		c.variables(fmt.Sprintf("%s.command[%d]", at, i), arg, vars)
	}
	for key, v := range svc.Env {
		if !envPattern.MatchString(key) {
			c.fail(at+".env", "%q is not the name of an environment variable", key)
		}
		c.variables(at+".env."+key, v, vars)
	}
	if svc.Ready == nil {
		c.fail(at+".ready", "say how to know that the service is ready: {http: URL}, {tcp: host:port} or {command: [...]}")
		return
	}
	c.ready(at+".ready", *svc.Ready, vars)
}

func (c *checker) ready(at string, r Ready, vars []string) {
	forms := 0
	if r.HTTP != "" {
		forms++
		if u, err := url.Parse(r.HTTP); err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
			c.fail(at+".http", "expected a URL such as http://127.0.0.1:8080/healthz, got %q", r.HTTP)
		}
	}
	if r.TCP != "" {
		forms++
		if host, _, err := net.SplitHostPort(r.TCP); err != nil || !loopback(host) {
			c.fail(at+".tcp", "expected an address such as 127.0.0.1:8080, got %q", r.TCP)
		}
	}
	if len(r.Command) > 0 {
		forms++
		for i, arg := range r.Command {
			c.variables(fmt.Sprintf("%s.command[%d]", at, i), arg, vars)
		}
	}
	if forms != 1 {
		c.fail(at, "expected exactly one of http, tcp and command")
	}
	if r.Timeout < 0 || r.Timeout > 10*time.Minute {
		c.fail(at+".timeout", "expected at most 10m, got %v", r.Timeout)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *checker) browser(b Browser) {
	for i, o := range b.Allow {
		at := fmt.Sprintf("browser.allow[%d]", i)
		if _, err := originPort(o); err != nil {
			c.fail(at, "%v", err)
		}
	}
	u, err := url.Parse(b.StartURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		c.fail("browser.start_url", "expected an http URL such as http://127.0.0.1:8080/, got %q", b.StartURL)
	} else if !contains(b.Allow, u.Scheme+"://"+u.Host) {
		c.fail("browser.allow", "the origin of start_url, %s://%s, is not in the list", u.Scheme, u.Host)
	}
	if v := b.Viewport; v.Width < 200 || v.Width > 8192 || v.Height < 200 || v.Height > 8192 {
		c.fail("browser.viewport", "width and height are 200 to 8192 pixels, got %d x %d", v.Width, v.Height)
	}
	if b.Scale < 0.25 || b.Scale > 4 {
		c.fail("browser.scale", "expected image pixels per CSS pixel from 0.25 to 4, got %g", b.Scale)
	}
	if b.Uploads != "" {
		c.inside("browser.uploads", b.Uploads, true)
	}
	if !localePattern.MatchString(b.Locale) {
		c.fail("browser.locale", "expected a language tag such as en-US, got %q", b.Locale)
	}
	if _, err := time.LoadLocation(b.Timezone); err != nil || b.Timezone == "Local" {
		c.fail("browser.timezone", "expected a time zone such as UTC or Europe/Paris, got %q", b.Timezone)
	}
}

// originPort is the port of an origin such as http://127.0.0.1:8080.
func originPort(origin string) (uint16, error) {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.Contains(u.Host, "*") {
		return 0, fmt.Errorf("expected an origin such as http://127.0.0.1:8080, got %q", origin)
	}
	switch {
	case u.Port() != "":
		p, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || p == 0 {
			return 0, fmt.Errorf("%q has no valid port", origin)
		}
		return uint16(p), nil
	case u.Scheme == "https":
		return 443, nil
	}
	return 80, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if strings.TrimSuffix(x, "/") == strings.TrimSuffix(s, "/") {
			return true
		}
	}
	return false
}

func (c *checker) variables(at, text string, known []string) {
	if _, err := expand(text, func(name string) (string, bool) {
		for _, k := range known {
			if k == name {
				return "", true
			}
		}
		return "", false
	}); err != nil {
		hint := "there are none here"
		if len(known) > 0 {
			hint = "known here: ${" + strings.Join(known, "}, ${") + "}"
		}
		c.fail(at, "%v; %s", err, hint)
	}
}
