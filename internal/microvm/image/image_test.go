package image

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// member is a file of an archive.
type member struct {
	name string
	mode int
	data string
}

// unpackArchive reads the format "newc" as the kernel does.
func unpackArchive(t *testing.T, b []byte) []member {
	t.Helper()
	var out []member
	for {
		if len(b) < 110 || string(b[:6]) != "070701" {
			t.Fatalf("no header after %d members: %q", len(out), b[:min(len(b), 16)])
		}
		field := func(n int) int {
			v, err := strconv.ParseUint(string(b[6+8*n:14+8*n]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		name, size := field(11), field(6)
		data := (110 + name + 3) &^ 3
		m := member{string(b[110 : 110+name-1]), field(1), string(b[data : data+size])}
		if m.name == "TRAILER!!!" {
			return out
		}
		if field(2) != 0 || field(3) != 0 || field(5) != 0 {
			t.Errorf("%s has an owner or a time", m.name)
		}
		out = append(out, m)
		b = b[(data+size+3)&^3:]
	}
}

func TestInitramfs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(program, "I am process 1")
	// In the order of their names, whatever the order of their making.
	write(filepath.Join(dir, "01-b.ko"), "second")
	write(filepath.Join(dir, "00-a.ko"), "first!")
	var one, two bytes.Buffer
	for _, w := range []*bytes.Buffer{&one, &two} {
		if err := writeInitramfs(w, &Base{Modules: dir}, program); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same files give other bytes")
	}
	var got []string
	for _, m := range unpackArchive(t, one.Bytes()) {
		got = append(got, fmt.Sprintf("%s %o %s", m.name, m.mode, m.data))
	}
	want := []string{
		"dev 40755 ", "proc 40755 ", "sys 40755 ", "root 40755 ", "modules 40755 ", "init 100755 I am process 1", "pommel-machine 100444 ",
		"modules/00-a.ko 100444 first!", "modules/01-b.ko 100444 second",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// packed is what lz4 makes in its old format.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	if err := w.Apply(lz4.LegacyOption(true)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackKernel(t *testing.T) {
	t.Parallel()
	kernel := "\x7fELF" + strings.Repeat("kernel ", 1000)
	image := []byte("a boot sector" + string(lz4Magic) + "which only looks like a stream")
	image = append(image, packed(t, "another thing")...)
	image = append(image, packed(t, kernel)...)
	image = append(image, "what follows in the file"...)
	var out bytes.Buffer
	if err := unpackKernel(&out, image); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), kernel) {
		t.Errorf("got %d bytes, %q", out.Len(), out.String()[:min(out.Len(), 20)])
	}
	for _, bad := range [][]byte{nil, []byte("no kernel"), packed(t, "no ELF")} {
		if err := unpackKernel(&out, bad); err == nil {
			t.Errorf("%.20q was taken for a kernel", bad)
		}
	}
}

func TestTakeKernel(t *testing.T) {
	t.Parallel()
	make := func(kernels ...string) (root, folder string) {
		root, folder = t.TempDir(), t.TempDir()
		lib := filepath.Join(root, "usr/lib/modules/6.1.0-1/kernel")
		for path, text := range map[string][]byte{
			filepath.Join(lib, "fs/erofs/erofs.ko"):             []byte("erofs"),
			filepath.Join(lib, "drivers/virtio/virtio_ring.ko"): []byte("ring"),
			filepath.Join(lib, "drivers/unneeded/unneeded.ko"):  []byte("no"),
			filepath.Join(root, "boot", "config-6.1.0-1"):       nil,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range kernels {
			if err := os.WriteFile(filepath.Join(root, "boot", k), packed(t, "\x7fELF kernel"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return root, folder
	}
	root, folder := make("vmlinuz-6.1.0-1")
	release, err := takeKernel(root, folder)
	if err != nil || release != "6.1.0-1" {
		t.Fatalf("%q %v", release, err)
	}
	found, err := filepath.Glob(filepath.Join(folder, modulesDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	if got := strings.Join(found, " "); got != "00-virtio_ring.ko 09-erofs.ko" {
		t.Errorf("modules %s", got)
	}
	for _, kernels := range [][]string{nil, {"vmlinuz-1", "vmlinuz-2"}} {
		root, folder := make(kernels...)
		if _, err := takeKernel(root, folder); err == nil {
			t.Errorf("of %d kernels one was taken", len(kernels))
		}
	}
}
