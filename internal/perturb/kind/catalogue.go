package kind

// Words that several settings share.
var (
	wording = Setting{Name: "words", Type: Text, Default: []string{"common"}, Choices: []string{"common", "heldout"},
		Doc: "which set of wordings and looks; heldout is for evaluation"}
	delay = Setting{Name: "delay", Type: Duration, Default: []string{"0s", "400ms"}, Max: 60_000,
		Doc: "virtual time after the page has come to rest"}
	repeat = Setting{Name: "repeat", Type: Number, Default: []string{"1"}, Min: 1, Max: 3,
		Doc: "how many requests in a row to that address it hits"}
)

var (
	pages    = []string{"document", "fetch"}
	fetches  = []string{"fetch"}
	reads    = []string{"GET"}
	writes   = []string{"POST", "PUT", "PATCH", "DELETE"}
	anything = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
)

var catalogue = append(append(httpKinds, pageKinds...), domKinds...)

var httpKinds = []Kind{
	{Name: "http.latency", Point: Request, Cost: 3, Types: pages, Methods: anything, Recovery: "wait",
		Doc:      "The request is held in virtual time, and sent then. No wall time passes.",
		Settings: []Setting{{Name: "delay", Type: Duration, Default: []string{"300ms", "900ms", "2s"}, Min: 1, Max: 600_000, Doc: "how long"}}},
	{Name: "http.slow_asset", Point: Request, Cost: 0, Types: []string{"script", "stylesheet", "image", "font"}, Methods: reads, Recovery: "none",
		Doc:      "As http.latency, for scripts, styles and pictures.",
		Settings: []Setting{{Name: "delay", Type: Duration, Default: []string{"200ms", "1s"}, Min: 1, Max: 600_000, Doc: "how long"}}},
	{Name: "http.reorder", Point: Request, Cost: 1, Types: fetches, Methods: reads, Recovery: "wait",
		Doc:      "The request is held until those that were sent after it are answered: parallel responses come in another order.",
		Settings: []Setting{{Name: "delay", Type: Duration, Default: []string{"400ms"}, Min: 1, Max: 60_000, Doc: "for how long later ones may overtake"}}},
	{Name: "http.error", Point: Request, Cost: 4, Types: pages, Methods: anything, Recovery: "retry",
		Doc:      "The server is not asked; the answer is an error page, or JSON where the caller wants it.",
		Settings: []Setting{{Name: "status", Type: Number, Default: []string{"500", "502", "503"}, Min: 500, Max: 599, Doc: "of the answer"}, repeat}},
	{Name: "http.rate_limit", Point: Request, Cost: 4, Types: pages, Methods: anything, Recovery: "wait and retry",
		Doc:      "429 with Retry-After. The server is not asked.",
		Settings: []Setting{{Name: "after", Type: Duration, Default: []string{"1s", "2s"}, Min: 1000, Max: 120_000, Doc: "Retry-After"}, repeat}},
	{Name: "http.timeout", Point: Request, Cost: 4, Types: pages, Methods: anything, Recovery: "retry",
		Doc:      "The request is held in virtual time, and fails then. The server is not asked.",
		Settings: []Setting{{Name: "delay", Type: Duration, Default: []string{"5s"}, Min: 1, Max: 600_000, Doc: "until it fails"}, repeat}},
	{Name: "http.reset", Point: Request, Cost: 4, Types: pages, Methods: anything, Recovery: "retry",
		Doc: "The connection is reset before the server is asked.", Settings: []Setting{repeat}},
	{Name: "http.lost_reply", Point: Request, Cost: 5, Types: fetches, Methods: writes, Recovery: "look whether it took effect, then retry",
		Doc:      "The server has done what was asked, but its answer is lost: an error comes in its place. To send again without looking does it twice.",
		Settings: []Setting{{Name: "status", Type: Number, Default: []string{"0", "502", "504"}, Max: 599, Doc: "of the error; 0 resets the connection"}}},
	{Name: "http.truncated", Point: Request, Cost: 4, Types: fetches, Methods: reads, Recovery: "reload",
		Doc:      "The body of the answer ends early.",
		Settings: []Setting{{Name: "percent", Type: Number, Default: []string{"30", "60"}, Min: 0, Max: 99, Doc: "how much of the body arrives"}}},
	{Name: "http.malformed", Point: Request, Cost: 4, Types: fetches, Methods: reads, Recovery: "reload",
		Doc: "The answer says 200 but its body is another one than the page expects: a gateway's HTML in the place of JSON."},
	{Name: "http.stale", Point: Request, Cost: 3, Types: pages, Methods: reads, Recovery: "reload",
		Doc: "A cache answers with what the address gave before. Nothing happens if it gave nothing before."},
}

var pageKinds = []Kind{
	{Name: "ui.cookie_banner", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A bar or box about cookies covers the lower part of the page until it is answered.", Settings: []Setting{delay, wording}},
	{Name: "ui.newsletter", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A window in front of the page offers a newsletter.", Settings: []Setting{delay, wording}},
	{Name: "ui.survey", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A window in front of the page asks for an opinion.", Settings: []Setting{delay, wording}},
	{Name: "ui.session_warning", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A window warns that the session is about to expire.", Settings: []Setting{delay, wording}},
	{Name: "ui.chat_widget", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A chat opens at the lower right and may cover what is there.", Settings: []Setting{delay, wording}},
	{Name: "ui.toast", Point: Page, Cost: 1, Recovery: "dismiss or wait", Doc: "A message lies over a control until it is closed or goes by itself.",
		Settings: []Setting{delay, wording, {Name: "stay", Type: Duration, Default: []string{"9s", "20s"}, Min: 1, Max: 600_000, Doc: "until it goes by itself"}}},
	{Name: "ui.sticky_header", Point: Page, Cost: 1, Recovery: "dismiss", Doc: "A band of news stays at the top of the window, over what is there.", Settings: []Setting{delay, wording}},
	{Name: "ui.confirm", Point: Page, Cost: 1, Recovery: "confirm", Doc: "The first press of a button of a form opens a window that asks whether one is sure.", Settings: []Setting{wording}},
	{Name: "browser.zoom", Point: Page, Cost: 0, Recovery: "none", Doc: "The page is shown larger or smaller.",
		Settings: []Setting{{Name: "percent", Type: Number, Default: []string{"80", "90", "110", "125"}, Min: 50, Max: 200, Doc: "zoom"}}},
	{Name: "browser.viewport", Point: Page, Cost: 0, Recovery: "none", Doc: "The window has another size.",
		Settings: []Setting{{Name: "width", Type: Number, Default: []string{"1024", "1366", "1440"}, Min: 320, Max: 3840, Doc: "CSS pixels"},
			{Name: "height", Type: Number, Default: []string{"700", "768", "900"}, Min: 240, Max: 2160, Doc: "CSS pixels"}}},
	{Name: "browser.theme", Point: Page, Cost: 0, Recovery: "none", Doc: "The user prefers dark or light colours.",
		Settings: []Setting{{Name: "scheme", Type: Text, Default: []string{"dark"}, Choices: []string{"dark", "light"}, Doc: "prefers-color-scheme"}}},
	{Name: "session.stale_form", Point: Page, Cost: 4, Recovery: "reload and fill in again",
		Doc: "The token that protects the page's forms has run out; the application refuses what is sent with it."},
	{Name: "session.sign_out", Point: Step, Cost: 0, Recovery: "sign in again",
		Doc: "The browser loses its cookies. Only for worlds whose tasks tell how to sign in: add tell to the profile."},
}

var domKinds = []Kind{
	{Name: "dom.delay_enable", Point: Page, Cost: 2, Recovery: "wait", Doc: "Buttons of forms work only after a while.",
		Settings: []Setting{{Name: "delay", Type: Duration, Default: []string{"6s", "9s"}, Min: 1, Max: 60_000, Doc: "until they work"}}},
	{Name: "dom.rename_ids", Point: Page, Cost: 0, Recovery: "find by role and name", Doc: "Ids and classes have other names; labels, styles and scripts that refer to them go on working."},
	{Name: "dom.relabel", Point: Page, Cost: 0, Recovery: "find by meaning", Doc: "Buttons and links have other words for the same thing.",
		Settings: []Setting{{Name: "style", Type: Text, Default: []string{"synonym"}, Choices: []string{"synonym", "icon", "german", "french"}, Doc: "what takes the place of the words"}}},
	{Name: "dom.reorder", Point: Page, Cost: 0, Recovery: "none", Doc: "Entries of menus and buttons in a row stand in another order."},
	{Name: "dom.move", Point: Page, Cost: 0, Recovery: "none", Doc: "Asides and navigation stand at another side of the page."},
	{Name: "dom.restyle", Point: Page, Cost: 0, Recovery: "none", Doc: "Other fonts, sizes, corners and colours."},
	{Name: "dom.retag", Point: Page, Cost: 0, Recovery: "find by role and name", Doc: "Buttons and links are made of other elements that behave alike and say their role."},
}
