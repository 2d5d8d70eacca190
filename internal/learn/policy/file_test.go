package policy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
)

func TestFileKeepsEveryBit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.pommel")
	n := net.New(3)
	if err := Write(file, Header{World: "shop", Seed: 3, Steps: 12}, n, []byte("state")); err != nil {
		t.Fatal(err)
	}
	h, got, trainer, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.P, n.P) || string(trainer) != "state" || h.World != "shop" || h.Steps != 12 {
		t.Errorf("read %+v, %q, equal parameters: %v", h, trainer, slices.Equal(got.P, n.P))
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files beside the policy, %v; expected it alone", len(entries), err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "p.pommel")
	if err := Write(file, Header{}, net.New(1), nil); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":          {nil, "pommel train"},
		"other":          {[]byte("{\"format\":\"x\"}\n"), "pommel train"},
		"cut off":        {good[:len(good)-10], "sum"},
		"changed":        {append(good[:len(good)-1:len(good)-1], good[len(good)-1]^1), "sum"},
		"newer":          {bytes.Replace(good, []byte(`"version":1`), []byte(`"version":9`), 1), "version 9"},
		"other features": {bytes.Replace(good, fmt.Appendf(nil, `"features":%d`, feature.Version), []byte(`"features":77`), 1), "train again"},
	} {
		bad := filepath.Join(dir, "bad.pommel")
		if err := os.WriteFile(bad, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := Read(bad)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: error %v; expected the file's name and %q", name, err, c.says)
		}
		if gym.ErrorKind(err) != gym.InvalidArgument {
			t.Errorf("%s: kind %s", name, gym.ErrorKind(err))
		}
	}
	if _, _, _, err := Read(filepath.Join(dir, "none")); gym.ErrorKind(err) != gym.InvalidArgument {
		t.Errorf("a file that is not there: %v", err)
	}
}
