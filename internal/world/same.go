package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pommelgym/pommel/internal/fault"
)

// Programs that were seeded when they started (OpenSSL's generator, which PostgreSQL and
// Node use) draw the same in every world that starts from an image only if they found the
// same there: beside the bytes of getrandom also the number of the process, the addresses of
// its memory and what the processor tells. The browser is no such program: its pages are
// hostile, and the places of its memory stay unknown.

const (
	// opensslVariable chooses what OpenSSL uses of the processor, and plainOpenSSL takes
	// rdtsc, rdrand and rdseed away from it.
	opensslVariable = "OPENSSL_ia32cap"
	plainOpenSSL    = "~0x4000000000000010:~0x40000"

	// firstPid is the number of the first service's first process, and pidStep how far the
	// next service's is from it: with room for the processes of the services, and for the
	// browser's threads, which start at the same time.
	firstPid = 10000
	pidStep  = 1000
	lastPid  = 30000 // below what kernels count to
)

// pidOf is the number that a service's first process is to get.
func (i *Image) pidOf(service string) int {
	n := slices.IndexFunc(i.Spec.Services, func(s Service) bool { return s.Name == service })
	if pid := firstPid + n*pidStep; n >= 0 && pid <= lastPid {
		return pid
	}
	return 0
}

// sameDraw says how a world that is ready differs from others of its image, "" if it does
// not. What its database draws at random tells of all that was before: the server's start,
// the connections that the application has made, the judge's own.
func (w *World) sameDraw(ctx context.Context) (string, error) {
	if w.Clocked() != nil {
		return "", nil
	}
	rows, err := w.judge.Query(ctx, "SELECT gen_random_uuid()::text")
	if err != nil {
		return "", fmt.Errorf("draw at random: %w", err)
	}
	return w.img.draws.compare(filepath.Join(w.img.dir, "drawn"), *rows.Text[0][0])
}

// draws guards what is noted of the draws of an image's worlds.
type draws struct{ mu sync.Mutex }

// compare looks at a draw beside the one that is known of earlier worlds, of other runs of
// the program too. The file holds that one, and the last that was unlike it: one that comes
// twice takes the place of the known one, since then the host has changed and the worlds
// are like each other again.
func (d *draws) compare(file, draw string) (odd string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read what other worlds drew: %w", err)
	}
	known, last, _ := strings.Cut(string(text), "\n")
	switch {
	case draw == known:
		return "", nil
	case known == "" || draw == last:
		text = []byte(draw + "\n")
	default:
		text = []byte(known + "\n" + draw)
		odd = "this world draws other random numbers than those that were started before it"
	}
	// Written aside first: another process may be reading.
	aside := file + "." + strconv.Itoa(os.Getpid())
	if err = os.WriteFile(aside, text, 0o644); err == nil {
		err = os.Rename(aside, file)
	}
	if err != nil {
		return "", fmt.Errorf("note what worlds draw: %w", err)
	}
	return odd, nil
}

// Reproducible says why an episode in this world need not be like the same episode in
// another one; nil if it is.
func (w *World) Reproducible() error {
	if err := w.Clocked(); err != nil {
		return err
	}
	if w.odd != "" {
		return fault.New(fault.Unsupported, "%s", w.odd)
	}
	return nil
}
