package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pommelgym/pommel/client"
)

// certificate writes one for 127.0.0.1 and returns who trusts it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der)))
	return cert, key, pool
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestServeBeyondLoopback: HTTPS, a token from a file, logs as JSON; the token stands in none of them.
func TestServeBeyondLoopback(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	const secret = "a-secret-that-is-nowhere-else"
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--worlds", "1", "--token-file", tokenFile, "--tls-cert", cert, "--tls-key", key, "--log-level", "debug", "--log-format", "json")
	if !strings.HasPrefix(s.address, "https://") {
		t.Fatalf("address = %s", s.address)
	}
	trust := &tls.Config{RootCAs: pool}
	stranger := must(client.Dial(s.address, client.Options{Token: "wrong", TLS: trust}))
	defer stranger.Close()
	if _, err := stranger.Server(t.Context()); client.KindOf(err) != client.Unauthenticated {
		t.Errorf("a stranger's call = %v", err)
	}
	c := must(client.Dial(s.address, client.Options{Token: secret, TLS: trust}))
	defer c.Close()
	sess, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reset(t, sess, "add-to-cart", 1)
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	defer h.CloseIdleConnections()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/metrics?token=" + secret: 401} {
		res, err := h.Get(s.address + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	if err := sess.Close(); err != nil {
		t.Error(err)
	}
	s.kill(t)
	log := s.log.Bytes()
	if !bytes.Contains(log, []byte(`"msg":"episode started"`)) {
		t.Errorf("the log has no start of an episode: %.2000s", log)
	}
	if bytes.Contains(log, []byte(secret)) {
		t.Error("the token stands in the log")
	}
}
