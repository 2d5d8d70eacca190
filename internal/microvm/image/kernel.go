package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pierrec/lz4/v4"
)

// modules are what a guest loads, in the order in which they need each other. Debian's
// kernel for clouds has no drivers for virtual devices built in.
var modules = []string{
	"drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_mmio", "net/core/failover",
	"drivers/net/net_failover", "drivers/net/virtio_net", "drivers/char/virtio_console", "drivers/block/virtio_blk",
	"lib/libcrc32c", "fs/erofs/erofs",
	"net/vmw_vsock/vsock", "net/vmw_vsock/vmw_vsock_virtio_transport_common", "net/vmw_vsock/vmw_vsock_virtio_transport",
}

// takeKernel moves kernel and modules out of a root into a folder and answers the release.
func takeKernel(root, folder string) (release string, err error) {
	found, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("take the kernel: expected one in /boot of the packages, found %d", len(found))
	}
	release = strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-")
	if err := os.Mkdir(filepath.Join(folder, modulesDir), 0o755); err != nil {
		return "", fmt.Errorf("take modules: %w", err)
	}
	for i, m := range modules {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/modules", release, "kernel", m+".ko"))
		if errors.Is(err, os.ErrNotExist) {
			continue // built in, in another release
		}
		if err == nil {
			// The number keeps the order.
			err = os.WriteFile(filepath.Join(folder, modulesDir, fmt.Sprintf("%02d-%s.ko", i, filepath.Base(m))), text, 0o644)
		}
		if err != nil {
			return "", fmt.Errorf("take modules: %w", err)
		}
	}
	packed, err := os.ReadFile(found[0])
	if err != nil {
		return "", fmt.Errorf("take the kernel: %w", err)
	}
	f, err := os.Create(filepath.Join(folder, kernelFile))
	if err != nil {
		return "", fmt.Errorf("take the kernel: %w", err)
	}
	defer f.Close()
	if err := unpackKernel(f, packed); err != nil {
		return "", fmt.Errorf("take the kernel: %w", err)
	}
	return release, f.Close()
}

// lz4Magic begins a stream in lz4's old format, which is what kernels are packed with.
var lz4Magic = []byte{0x02, 0x21, 0x4c, 0x18}

// unpackKernel takes the ELF kernel out of a bzImage. Unpacking itself is what takes a guest
// longest at its start.
func unpackKernel(w io.Writer, image []byte) error {
	for rest := image; ; {
		at := bytes.Index(rest, lz4Magic)
		if at < 0 {
			return errors.New("it is not packed with lz4")
		}
		rest = rest[at:]
		var out bytes.Buffer
		// What follows the stream in the file is no part of it and ends it with an error.
		_, err := io.Copy(&out, lz4.NewReader(bytes.NewReader(rest)))
		if bytes.HasPrefix(out.Bytes(), []byte("\x7fELF")) {
			_, err = w.Write(out.Bytes())
			return err
		}
		if len(rest) <= len(lz4Magic) {
			return fmt.Errorf("what is packed in it is no ELF kernel: %w", err)
		}
		rest = rest[len(lz4Magic):]
	}
}
