package world

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
	"github.com/pommelgym/pommel/internal/microvm"
	"github.com/pommelgym/pommel/internal/postgres"
	"github.com/pommelgym/pommel/internal/sandbox"
)

// Doctor looks at all that worlds need on this host. It starts a sandbox and asks the
// programs for their versions.
func Doctor(ctx context.Context) []sandbox.Finding {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return append(sandbox.Doctor(ctx), postgresFinding(ctx), chromiumFinding(ctx), machineFinding(ctx), cacheFinding())
}

func postgresFinding(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Name: "postgres", Required: true}
	in, err := postgres.FindInstall(ctx, os.Getenv)
	if err != nil {
		f.Detail, f.Remedy = err.Error(), fault.HintOf(err)
		return f
	}
	f.OK, f.Detail = true, fmt.Sprintf("version %s in %s", in.Version, in.BinDir)
	return f
}

func chromiumFinding(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Name: "chromium", Required: true}
	path, err := browser.FindChromium()
	if err != nil {
		f.Detail, f.Remedy = err.Error(), fault.HintOf(err)
		return f
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		f.Detail, f.Remedy = fmt.Sprintf("%s --version: %v", path, err), "install its libraries, or another build"
		return f
	}
	f.OK, f.Detail = true, strings.TrimSpace(string(out))+" at "+path
	return f
}

func machineFinding(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Name: machineName}
	d, err := machineDriver()
	if err == nil {
		err = d.Available(ctx)
	}
	if err != nil {
		f.Detail, f.Remedy = err.Error(), fault.HintOf(err)
		return f
	}
	f.OK = true
	hardware := "the processor can run machines"
	if err := microvm.Hardware(); err != nil {
		hardware = err.Error()
	}
	switch e, _ := microvm.Chosen(); e { // it was asked for above
	case microvm.Emulated:
		f.Detail = fmt.Sprintf("machines are emulated by %s and put back in place; %s", microvm.Emulator, hardware)
	case microvm.KVM:
		f.Detail = fmt.Sprintf("machines are run by %s on KVM and replaced by copies; %s", microvm.Emulator, hardware)
	case microvm.Firecracker:
		f.Detail = fmt.Sprintf("machines are run by %s and replaced by copies; %s", os.Getenv(microvm.FirecrackerVariable), hardware)
	}
	return f
}

func cacheFinding() sandbox.Finding {
	f := sandbox.Finding{Name: "cache", Required: true, Remedy: "set POMMEL_CACHE to a folder that can be written"}
	dir, err := CacheDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		probe := filepath.Join(dir, ".probe")
		if err = os.WriteFile(probe, nil, 0o600); err == nil {
			err = os.Remove(probe)
		}
	}
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	return sandbox.Finding{Name: "cache", OK: true, Required: true, Detail: dir}
}
