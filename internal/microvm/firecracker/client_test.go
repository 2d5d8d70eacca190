package firecracker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func testContext(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, p *peer) *Client {
	t.Helper()
	p.listen()
	c, err := Connect(testContext(t), p.socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if c.Version != "1.16.0" {
		t.Errorf("version %q", c.Version)
	}
	return c
}

var someMachine = Machine{
	Kernel: "/machine/vmlinux", Initramfs: "/machine/initramfs", Args: "console=ttyS0 quiet", MemoryMiB: 384,
	Disks: []Disk{{"root", "/machine/root.erofs"}, {"world", "/machine/world.erofs"}}, Vsock: "/home/machine/vsock",
}

// A template is booted, stopped and saved; every request is one that Firecracker takes, in this order.
func TestBootAndSave(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, ctx := connect(t, p), testContext(t)
	for what, f := range map[string]func() error{
		"save of nothing":     func() error { return c.Save(ctx, Snapshot{"/m", "/s"}) },
		"halt of nothing":     func() error { return c.Stop(ctx) },
		"continue of nothing": func() error { return c.Continue(ctx) },
	} {
		var fault *Error
		if err := f(); !errors.As(err, &fault) || fault.Status != http.StatusBadRequest || fault.Message != beforeStart {
			t.Errorf("%s: %v", what, err)
		}
	}
	from := len(p.requests())
	if err := c.Boot(ctx, someMachine); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(ctx, Snapshot{"/m", "/s"}); err == nil || !strings.Contains(err.Error(), "vCPUs are not paused") {
		t.Errorf("save of a running machine: %v", err)
	}
	for _, f := range []func() error{
		func() error { return c.Stop(ctx) },
		func() error {
			return c.Save(ctx, Snapshot{Memory: "/home/machine/memory", State: "/home/machine/state"})
		},
		func() error { return c.Continue(ctx) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := c.Status(ctx); err != nil || s != "Running" {
		t.Errorf("%q %v", s, err)
	}
	want := []string{
		`PUT /machine-config {"vcpu_count":1,"mem_size_mib":384}`,
		`PUT /boot-source {"kernel_image_path":"/machine/vmlinux","initrd_path":"/machine/initramfs","boot_args":"console=ttyS0 quiet"}`,
		`PUT /drives/root {"drive_id":"root","path_on_host":"/machine/root.erofs","is_root_device":false,"is_read_only":true}`,
		`PUT /drives/world {"drive_id":"world","path_on_host":"/machine/world.erofs","is_root_device":false,"is_read_only":true}`,
		`PUT /vsock {"guest_cid":3,"uds_path":"/home/machine/vsock"}`,
		`PUT /actions {"action_type":"InstanceStart"}`,
		`PUT /snapshot/create {"snapshot_type":"Full","snapshot_path":"/s","mem_file_path":"/m"}`,
		`PATCH /vm {"state":"Paused"}`,
		`PUT /snapshot/create {"snapshot_type":"Full","snapshot_path":"/home/machine/state","mem_file_path":"/home/machine/memory"}`,
		`PATCH /vm {"state":"Resumed"}`,
		`GET /`,
	}
	if got := p.requests()[from:]; !slices.Equal(got, want) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A copy maps the memory of the snapshot and waits; a process takes one machine in its life.
func TestLoad(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, ctx := connect(t, p), testContext(t)
	s := Snapshot{Memory: "/machine/memory", State: "/machine/state"}
	if err := c.Load(ctx, s); err != nil {
		t.Fatal(err)
	}
	if st, err := c.Status(ctx); err != nil || st != "Paused" {
		t.Errorf("%q %v", st, err)
	}
	if err := c.Continue(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(ctx, s); err == nil || !strings.Contains(err.Error(), "not allowed after") {
		t.Errorf("a second machine: %v", err)
	}
	want := `PUT /snapshot/load {"snapshot_path":"/machine/state","mem_backend":{"backend_type":"File","backend_path":"/machine/memory"},"resume_vm":false}`
	if got := p.requests(); !slices.Contains(got, want) {
		t.Errorf("asked %q, want %s", got, want)
	}
}

// A boot ends at the first refusal, and the error says which request, and why.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for request, message := range map[string]string{
		"PUT /machine-config": "The memory size (MiB) is either 0, or not a multiple of the configured page size.",
		"PUT /boot-source":    "The kernel file cannot be opened: No such file or directory (os error 2)",
		"PUT /drives/world":   "Unable to create the block device: Backing file error",
		"PUT /vsock":          "Cannot create backend for vsock device: Error binding to the host-side Unix socket",
		"PUT /actions":        "Internal error while starting microVM: Error creating KVM object",
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t)
			p.failing(request, message)
			err := connect(t, p).Boot(testContext(t), someMachine)
			var fault *Error
			if !errors.As(err, &fault) || fault.Message != message || !strings.Contains(err.Error(), request) {
				t.Errorf("got %v", err)
			}
			asked := p.requests()
			if last := asked[len(asked)-1]; !strings.HasPrefix(last, request) {
				t.Errorf("went on to %s", last)
			}
		})
	}
}

// A process that does not listen yet is waited for; one that ends is not.
func TestConnect(t *testing.T) {
	t.Parallel()
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		p := newPeer(t)
		got := make(chan error, 1)
		go func() {
			c, err := Connect(testContext(t), p.socket, make(chan struct{}))
			if err == nil {
				c.Close()
			}
			got <- err
		}()
		p.listen()
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		ended := make(chan struct{})
		close(ended)
		if _, err := Connect(testContext(t), newPeer(t).socket, ended); err == nil || !strings.Contains(err.Error(), "ended before") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		if _, err := Connect(ctx, newPeer(t).socket, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not firecracker", func(t *testing.T) {
		t.Parallel()
		p := newPeer(t)
		l, err := net.Listen("unix", p.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("SSH-2.0\r\n"))
				_ = c.Close()
			}
		}()
		if _, err := Connect(testContext(t), p.socket, nil); err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		text, want string
	}{
		{204, "", ""},
		{200, `{"state": "Paused"}`, ""},
		{200, `{`, "no JSON"},
		{400, `{"fault_message": "no"}`, "no"},
		{500, `<html>`, "status 500"},
		{404, ``, "status 404"},
	} {
		var out map[string]string
		err := answer(c.status, []byte(c.text), &out)
		if c.status == 204 {
			err = answer(c.status, nil, nil)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %q: %v", c.status, c.text, err)
		}
	}
}
