package browser

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// FlagConfig is what the command line of the browser depends on.
type FlagConfig struct {
	// UserDataDir is the profile folder; the caller makes and removes it.
	UserDataDir string
	// Width and Height are the viewport in CSS pixels.
	Width, Height int
	// Scale is image pixels per CSS pixel; 0 is 1. It must be that of Config.
	Scale float64
	// Locale is a language tag such as "en-US".
	Locale string
	// Allow lists the origins ("http://127.0.0.1:8080") that the browser may reach.
	Allow []string
}

// offFeatures are switched off. DeferRendererTasksAfterInput holds the page's timers
// after a click until a frame; RenderDocument loses trusted input after each
// navigation; BackForwardCache and the spare renderer keep pages alive that a
// reset would have to know of; the rest talks to the network or costs memory.
var offFeatures = []string{
	"DeferRendererTasksAfterInput", "Translate", "PaintHolding", "BackForwardCache",
	"SpareRendererForSitePerProcess", "ProcessPerSiteUpToMainFrameThreshold", "RenderDocument",
	"V8CodeCache", "OptimizationHints", "MediaRouter", "IsolateOrigins", "site-per-process",
	"DialMediaRouteProvider", "HttpsUpgrades", "AutofillServerCommunication", "CertificateTransparencyComponentUpdater",
}

// Flags is the command line of a browser (without the program) whose protocol goes
// over file descriptors 3 (to the browser) and 4 (from it).
func Flags(cfg FlagConfig) ([]string, error) {
	if cfg.Scale <= 0 {
		cfg.Scale = 1
	}
	rules, err := hostRules(cfg.Allow)
	if err != nil {
		return nil, err
	}
	return []string{
		"--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + cfg.UserDataDir,
		fmt.Sprintf("--window-size=%d,%d", cfg.Width, cfg.Height),
		"--lang=" + cfg.Locale,
		"--force-device-scale-factor=" + strconv.FormatFloat(cfg.Scale, 'g', -1, 64),
		"--hide-scrollbars", "--mute-audio", "--log-level=3", "--disable-extensions", "--disable-default-apps", "--disable-breakpad",
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--force-color-profile=srgb", "--disable-hang-monitor", "--disable-ipc-flooding-protection", "--disable-smooth-scrolling",
		"--disable-popup-blocking", "--no-default-browser-check", "--disable-domain-reliability", "--no-pings",
		// Frames come only when asked for, so that page time stands still between steps.
		"--enable-begin-frame-control", "--run-all-compositor-stages-before-draw", "--disable-new-content-rendering-timeout",
		"--disable-threaded-animation", "--disable-threaded-scrolling", "--disable-checker-imaging",
		"--disable-features=" + strings.Join(offFeatures, ","),
		"--enable-features=NetworkServiceInProcess2", "--in-process-gpu", "--disable-site-isolation-trials",
		"--num-raster-threads=1", "--renderer-process-limit=1", "--process-per-site",
		// Init scripts do not reach workers; this seeds what they draw.
		"--js-flags=--random-seed=1",
		"--host-resolver-rules=" + rules,
		"--proxy-server=direct://",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--remote-debugging-pipe",
	}, nil
}

// hostRules lets names resolve only for the allowed hosts and ports. The rules are
// also applied to IP literals in every spelling, to web sockets and to redirects,
// since the browser asks its resolver for all of them.
func hostRules(allow []string) (string, error) {
	var b strings.Builder
	for _, o := range allow {
		host, port, err := splitOrigin(o)
		if err != nil {
			return "", err
		}
		hp := net.JoinHostPort(host, strconv.Itoa(port))
		fmt.Fprintf(&b, "MAP %s:%d %s,", host, port, hp)
	}
	b.WriteString("MAP * ~NOTFOUND")
	return b.String(), nil
}

// splitOrigin takes an origin such as "http://127.0.0.1:8080" apart.
func splitOrigin(origin string) (host string, port int, err error) {
	u, err := url.Parse(origin)
	if err != nil {
		return "", 0, fmt.Errorf("allowed origin %q: %w", origin, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || strings.ContainsAny(u.Host, "*?, ") {
		return "", 0, fmt.Errorf("allowed origin %q: want http://host:port or https://host:port, without patterns", origin)
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", 0, fmt.Errorf("allowed origin %q: want scheme, host and port only", origin)
	}
	port = 80
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return "", 0, fmt.Errorf("allowed origin %q: port is not a number from 1 to 65535", origin)
		}
	}
	return strings.ToLower(u.Hostname()), port, nil
}

// shellPlaces are where distributions put the headless shell.
var shellPlaces = []string{
	"/usr/lib/chromium/chromium-headless-shell",
	"/usr/lib64/chromium-browser/headless_shell",
	"/opt/chromium/chrome-headless-shell",
	"/opt/chrome-headless-shell/chrome-headless-shell",
}

// FindChromium is the path of the headless shell: $POMMEL_CHROMIUM if set, else the
// usual places, else the search path.
func FindChromium() (string, error) {
	if p := os.Getenv("POMMEL_CHROMIUM"); p != "" {
		if err := executable(p); err != nil {
			return "", fault.New(fault.Unsupported, "POMMEL_CHROMIUM names %s: %v", p, err).
				WithHint("set POMMEL_CHROMIUM to the chrome-headless-shell program")
		}
		return p, nil
	}
	for _, p := range shellPlaces {
		if executable(p) == nil {
			return p, nil
		}
	}
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "headless_shell"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", fault.New(fault.Unsupported, "found no Chromium headless shell").
		WithHint("install the package chromium-headless-shell, or set POMMEL_CHROMIUM to the program")
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return err
	case st.IsDir() || st.Mode()&0o111 == 0:
		return errors.New("it is not a program")
	}
	return nil
}
