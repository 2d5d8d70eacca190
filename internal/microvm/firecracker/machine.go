package firecracker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Machine is what to boot. Paths are those of the process that runs it.
type Machine struct {
	Kernel, Initramfs, Args string
	MemoryMiB               int64
	// Disks are read-only, in this order.
	Disks []Disk
	// Vsock is the socket at which the guest's ports are reached.
	Vsock string
}

// Disk is a file that the guest sees as a disk.
type Disk struct{ ID, Path string }

// Snapshot is where a machine is saved: its memory, and the state of its processor and devices.
type Snapshot struct{ Memory, State string }

// guestCID is the guest's address; every Firecracker is a world of its own.
const guestCID = 3

type (
	bootSource struct {
		Kernel    string `json:"kernel_image_path"`
		Initramfs string `json:"initrd_path"`
		Args      string `json:"boot_args"`
	}
	machineConfig struct {
		CPUs      int   `json:"vcpu_count"`
		MemoryMiB int64 `json:"mem_size_mib"`
	}
	drive struct {
		ID       string `json:"drive_id"`
		Path     string `json:"path_on_host"`
		Root     bool   `json:"is_root_device"`
		ReadOnly bool   `json:"is_read_only"`
	}
	vsock struct {
		CID  int    `json:"guest_cid"`
		Path string `json:"uds_path"`
	}
	action struct {
		Type string `json:"action_type"`
	}
	vmState struct {
		State string `json:"state"`
	}
	snapshotCreate struct {
		Type   string `json:"snapshot_type"`
		State  string `json:"snapshot_path"`
		Memory string `json:"mem_file_path"`
	}
	memoryBackend struct {
		Type string `json:"backend_type"`
		Path string `json:"backend_path"`
	}
	snapshotLoad struct {
		State  string        `json:"snapshot_path"`
		Memory memoryBackend `json:"mem_backend"`
		Resume bool          `json:"resume_vm"`
	}
)

// Boot configures the machine and starts it. It has one processor, memory, read-only disks, vsock
// and a serial console that is the process's own output; it has no network.
func (c *Client) Boot(ctx context.Context, m Machine) error {
	if err := c.put(ctx, "/machine-config", machineConfig{CPUs: 1, MemoryMiB: m.MemoryMiB}); err != nil {
		return err
	}
	if err := c.put(ctx, "/boot-source", bootSource{Kernel: m.Kernel, Initramfs: m.Initramfs, Args: m.Args}); err != nil {
		return err
	}
	for _, d := range m.Disks {
		// None is the root device: that would add to the kernel's arguments, and process 1 mounts it.
		if err := c.put(ctx, "/drives/"+d.ID, drive{ID: d.ID, Path: d.Path, ReadOnly: true}); err != nil {
			return err
		}
	}
	if err := c.put(ctx, "/vsock", vsock{CID: guestCID, Path: m.Vsock}); err != nil {
		return err
	}
	return c.put(ctx, "/actions", action{"InstanceStart"})
}

// Load makes a machine of a snapshot, in a process that has none yet, and leaves it stopped. Its memory
// is the snapshot's file, mapped copy on write: the file must stay as it is. Disks and the socket of
// vsock are where they were when the snapshot was made.
func (c *Client) Load(ctx context.Context, s Snapshot) error {
	return c.put(ctx, "/snapshot/load", snapshotLoad{State: s.State, Memory: memoryBackend{"File", s.Memory}})
}

// Save saves a stopped machine. Connections with its guest end.
func (c *Client) Save(ctx context.Context, s Snapshot) error {
	return c.put(ctx, "/snapshot/create", snapshotCreate{Type: "Full", State: s.State, Memory: s.Memory})
}

// Stop halts the processor.
func (c *Client) Stop(ctx context.Context) error {
	return c.do(ctx, http.MethodPatch, "/vm", vmState{"Paused"}, nil)
}

// Continue lets it go on.
func (c *Client) Continue(ctx context.Context) error {
	return c.do(ctx, http.MethodPatch, "/vm", vmState{"Resumed"}, nil)
}

// Status is the machine's state: "Not started", "Running" or "Paused".
func (c *Client) Status(ctx context.Context) (string, error) {
	var info struct {
		App   string `json:"app_name"`
		State string `json:"state"`
	}
	if err := c.do(ctx, http.MethodGet, "/", nil, &info); err != nil {
		return "", err
	}
	if info.State == "" {
		return "", fmt.Errorf("firecracker GET /: %w", errors.New("it did not say its state"))
	}
	return info.State, nil
}

func (c *Client) put(ctx context.Context, path string, body any) error {
	return c.do(ctx, http.MethodPut, path, body, nil)
}
