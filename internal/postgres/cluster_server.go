package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pommelgym/pommel/internal/sys"
)

// ServerArgv is the command line of a cluster's server. The options on it win over every
// setting in the data folder. listen is "" for no TCP at all.
func ServerArgv(in Install, dataDir, socketDir, listen string, port int) []string {
	return []string{
		in.program("postgres"), "-D", dataDir, "-p", strconv.Itoa(port), "-k", socketDir,
		"-c", "listen_addresses=" + listen,
	}
}

// ServerEnv is the environment that the server needs: none of the caller's.
func ServerEnv() []string { return []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"} }

// WaitReady waits until the server of dataDir takes connections. PostgreSQL writes that
// into its pid file, so no connection is tried in vain. It ends early when gone is closed.
func WaitReady(ctx context.Context, dataDir string, gone <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-gone:
			cancel(errServerGone)
		case <-stopped:
		}
	}()
	err := sys.WaitFolder(ctx, dataDir, func() (bool, error) {
		data, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
		if os.IsNotExist(err) {
			return false, nil
		}
		lines := strings.Split(string(data), "\n")
		return err == nil && len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready", err
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("wait for postgres: %w", err)
	}
	return nil
}

var errServerGone = fmt.Errorf("the server ended")

// Account is the unprivileged user that a server outside a world runs as.
type Account struct {
	UID, GID int
}

// Server is a running cluster outside a world: for building images and for tests.
type Server struct {
	DataDir, SocketDir string

	proc *sys.Bound
	log  logTail
	once sync.Once
}

// StartServer runs the cluster in dataDir, reachable over a unix socket in socketDir alone.
// Both folders must belong to the account.
func StartServer(ctx context.Context, in Install, dataDir, socketDir string, as Account) (*Server, error) {
	s := &Server{DataDir: dataDir, SocketDir: socketDir}
	argv := ServerArgv(in, dataDir, socketDir, "", Port)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dataDir, ServerEnv()
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(as.UID), Gid: uint32(as.GID)},
		Setpgid:    true,
	}
	// A backend that outlives the postmaster for a moment still holds the log pipe.
	cmd.WaitDelay = 2 * time.Second
	proc, err := sys.StartBound(cmd)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s.proc = proc
	if err := WaitReady(ctx, dataDir, proc.Done()); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w%s", err, s.log.suffix())
	}
	return s, nil
}

// DSN is the address of the database for a role, over the unix socket.
func (s *Server) DSN(role, database string) string { return SocketDSN(s.SocketDir, role, database) }

// SocketDSN is the address of a database behind a socket folder.
func SocketDSN(socketDir, role, database string) string {
	q := func(v string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
	}
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", q(socketDir), Port, q(role), q(database))
}

// Stop shuts the server down in order: connections are ended, a checkpoint is written.
func (s *Server) Stop(ctx context.Context) error {
	s.proc.Signal(syscall.SIGINT)
	select {
	case <-s.proc.Done():
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("stop postgres: %w%s", ctx.Err(), s.log.suffix())
	}
	if err := s.proc.Err(); err != nil {
		return fmt.Errorf("stop postgres: %w%s", err, s.log.suffix())
	}
	return nil
}

// Kill ends the server and its backends at once. It may be called twice and after Stop.
func (s *Server) Kill() {
	s.once.Do(func() {
		select {
		case <-s.proc.Done():
			return
		default:
		}
		// The leader is not reaped yet, so the group id cannot belong to anybody else.
		_ = syscall.Kill(-s.proc.Pid(), syscall.SIGKILL)
	})
	<-s.proc.Done()
}

func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	return conn, nil
}

// logTail keeps the last output of a server for error messages.
type logTail struct {
	mu  sync.Mutex
	buf []byte
}

func (l *logTail) Write(p []byte) (int, error) {
	const most = 4096
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) > most {
		l.buf = append(l.buf[:0:0], l.buf[len(l.buf)-most:]...)
	}
	return len(p), nil
}

func (l *logTail) suffix() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := bytes.TrimSpace(l.buf); len(text) > 0 {
		return "\n" + string(text)
	}
	return ""
}
