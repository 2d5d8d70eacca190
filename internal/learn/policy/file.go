package policy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/learn/feature"
	"github.com/pommelgym/pommel/internal/learn/net"
)

// FileVersion is raised when the layout of a policy file changes.
const FileVersion = 1

const magic = "pommel policy"

// Header is the first line of a policy file, in JSON: what the policy is and how it came to be.
type Header struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Features int    `json:"features"`
	Hidden   int    `json:"hidden"`
	// Sum is the SHA-256 of what follows.
	Sum     string  `json:"sum"`
	World   string  `json:"world"`
	Profile string  `json:"profile"`
	Seed    int64   `json:"seed"`
	Steps   int     `json:"steps"`
	Updates int     `json:"updates"`
	Success float64 `json:"success"`
}

// body follows the header, gzipped gob.
type body struct {
	Params []float64
	// Trainer is what training needs to go on; empty in a policy that is only played.
	Trainer []byte
}

// Write stores a network, and what its trainer needs to go on, whole or not at all.
func Write(path string, h Header, n *net.Net, trainer []byte) error {
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	if err := gob.NewEncoder(z).Encode(body{Params: n.P, Trainer: trainer}); err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	sum := sha256.Sum256(data.Bytes())
	h.Format, h.Version, h.Features, h.Hidden, h.Sum = magic, FileVersion, feature.Version, net.Hidden, hex.EncodeToString(sum[:])
	head, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	return replace(path, append(append(head, '\n'), data.Bytes()...))
}

// replace writes a file beside its place and moves it there.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write policy: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Read reads a policy file.
func Read(path string) (Header, *net.Net, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return Header{}, nil, nil, gym.NewError(gym.InvalidArgument, "open policy: %v", err)
	}
	defer f.Close()
	h, b, err := read(bufio.NewReader(f))
	if err != nil {
		return h, nil, nil, gym.NewError(gym.InvalidArgument, "%s: %v", path, err)
	}
	return h, &net.Net{P: b.Params}, b.Trainer, nil
}

func read(r *bufio.Reader) (Header, body, error) {
	var h Header
	var b body
	line, err := r.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &h) != nil || h.Format != magic {
		return h, b, errors.New("no policy file of Pommel: `pommel train --out DIR` writes DIR/policy.pommel")
	}
	if h.Version != FileVersion {
		return h, b, fmt.Errorf("version %d of the file's layout; this program reads version %d", h.Version, FileVersion)
	}
	if h.Features != feature.Version || h.Hidden != net.Hidden {
		return h, b, fmt.Errorf("made for features %d with %d hidden units; this program has features %d with %d: train again", h.Features, h.Hidden, feature.Version, net.Hidden)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return h, b, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != h.Sum {
		return h, b, errors.New("the content does not have the sum that its header names: cut off or changed")
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return h, b, err
	}
	if err := gob.NewDecoder(z).Decode(&b); err != nil {
		return h, b, err
	}
	if len(b.Params) != net.Size {
		return h, b, fmt.Errorf("%d parameters; expected %d", len(b.Params), net.Size)
	}
	return h, b, nil
}
