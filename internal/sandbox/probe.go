package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// probe tries until it holds or the time is over. Nothing tells when a program starts to
// listen, so it asks often at first and then less.
func (k *keeper) probe(p Probe) error {
	deadline := time.Now().Add(p.Timeout)
	pause := 2 * time.Millisecond
	var reason error
	for {
		err := k.probeOnce(p, time.Until(deadline))
		if err == nil {
			return nil
		}
		// What the end of the time cut off tells less than the try before it.
		if reason == nil || time.Until(deadline) > 0 {
			reason = err
		}
		if time.Until(deadline) < pause {
			return fmt.Errorf("not ready after %v: %w", p.Timeout, reason)
		}
		time.Sleep(pause)
		pause = min(pause*3/2, 100*time.Millisecond)
	}
}

func (k *keeper) probeOnce(p Probe, left time.Duration) error {
	left = min(max(left, 10*time.Millisecond), 5*time.Second)
	switch {
	case p.HTTP != "":
		return probeHTTP(p.HTTP, left)
	case p.TCP != "":
		return probeTCP(p.TCP, left)
	case p.Command != nil:
		return k.probeCommand(*p.Command, left)
	}
	return errors.New("empty probe")
}

func (k *keeper) probeCommand(p Process, left time.Duration) error {
	key := int(-k.probes.Add(1)) // keys of the owner are positive
	c := &child{key: key, exited: make(chan syscall.WaitStatus, 1)}
	if _, err := k.spawn(p, []*os.File{k.devNull}, c); err != nil {
		return err
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case st := <-c.exited:
		if st.ExitStatus() != 0 {
			return fmt.Errorf("%s: exit code %d", p.Argv[0], st.ExitStatus())
		}
		return nil
	case <-timer.C:
		_ = k.signal(signalRequest{Key: key, Signal: syscall.SIGKILL})
		<-c.exited
		return fmt.Errorf("%s: still running after %v", p.Argv[0], left)
	}
}

func probeHTTP(url string, left time.Duration) error {
	client := http.Client{
		Timeout:       left,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 400 {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}

func probeTCP(addr string, left time.Duration) error {
	c, err := net.DialTimeout("tcp", addr, left)
	if err != nil {
		return err
	}
	return c.Close()
}
