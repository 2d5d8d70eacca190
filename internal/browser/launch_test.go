package browser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

func TestFlagsAllowOnlyTheOrigins(t *testing.T) {
	t.Parallel()
	flags, err := browser.Flags(browser.FlagConfig{
		UserDataDir: "/p", Width: 800, Height: 600, Locale: "de-DE",
		Allow: []string{"http://127.0.0.1:8080", "https://Shop.example", "http://[::1]:9/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--host-resolver-rules=MAP 127.0.0.1:8080 127.0.0.1:8080,MAP shop.example:443 shop.example:443,MAP ::1:9 [::1]:9,MAP * ~NOTFOUND",
		"--remote-debugging-pipe", "--user-data-dir=/p", "--window-size=800,600", "--lang=de-DE", "--force-device-scale-factor=1",
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("flags lack %s:\n%s", want, strings.Join(flags, "\n"))
		}
	}
}

func TestFlagsRefuseWhatIsNoOrigin(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://*", "http://a,MAP * b", "http://x/path", "http://x?q", "http://u@x", "http://x:99999", "http://"} {
		if _, err := browser.Flags(browser.FlagConfig{Allow: []string{bad}}); err == nil || !strings.Contains(err.Error(), "allowed origin") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFindChromium(t *testing.T) {
	t.Setenv("POMMEL_CHROMIUM", "/nowhere/chromium")
	_, err := browser.FindChromium()
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/nowhere/chromium") || fault.HintOf(err) == "" {
		t.Fatalf("err %v", err)
	}
	t.Setenv("POMMEL_CHROMIUM", "")
	if p, err := browser.FindChromium(); err != nil || p == "" {
		t.Fatalf("%q, %v", p, err)
	}
}
