package episode

import (
	"github.com/pommelgym/pommel/internal/browser"
	"github.com/pommelgym/pommel/internal/fault"
)

func checkView(v browser.View) error {
	switch {
	case v.Screenshot != "" && v.Screenshot != "png" && v.Screenshot != "jpeg":
		return fault.New(fault.InvalidArgument, "view.screenshot is %q; it takes png, jpeg or nothing", v.Screenshot)
	case v.MaxText < 0:
		return fault.New(fault.InvalidArgument, "view.max_text is %d; it takes a number of bytes, 0 for the default", v.MaxText)
	}
	return nil
}
