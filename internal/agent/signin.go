package agent

import (
	"context"
	"regexp"
	"strings"

	"github.com/pommelgym/pommel/gym"
	"github.com/pommelgym/pommel/internal/action"
)

// signInAs finds credentials in an instruction.
var signInAs = regexp.MustCompile(`(\S+@\S+\w) and the password (\S+\w)`)

// signedOut says that the page asks to sign in where it did not in the rehearsal.
func (p *performance) signedOut(want *take) bool {
	return p.password != "" && isSignIn(p.last.Observation.URL) && (want == nil || !isSignIn(want.after) && !isSignIn(want.before))
}

var signInPath = regexp.MustCompile(`/(log-?in|sign-?in)([/?]|$)`)

func isSignIn(address string) bool { return signInPath.MatchString(address) }

// signIn fills in the form that asks to sign in, and goes back to where it was.
func (p *performance) signIn(ctx context.Context) error {
	var email, password, button string
	for _, e := range p.last.Observation.Elements {
		name := strings.ToLower(e.Name)
		switch {
		case e.Role == "textbox" && strings.Contains(name, "mail"):
			email = e.Bid
		case e.Role == "textbox" && strings.Contains(name, "password"):
			password = e.Bid
		case e.Role == "button" && password != "" && button == "":
			button = e.Bid
		}
	}
	for _, text := range []string{
		"fill(" + action.Quote(email) + ", " + action.Quote(p.email) + ")",
		"fill(" + action.Quote(password) + ", " + action.Quote(p.password) + ")",
		"click(" + action.Quote(button) + ")",
	} {
		if _, err := p.attempt(ctx, text, nil); err != nil {
			return err
		}
	}
	return nil
}

var signInName = regexp.MustCompile(`(?i)^(sign ?in|log ?in|anmelden|se connecter)$`)

// signInLink is the control that leads to the form; "" where there is none.
func signInLink(o *gym.Observation) string {
	for _, e := range o.Elements {
		if (e.Role == "link" || e.Role == "button") && signInName.MatchString(e.Name) {
			return e.Bid
		}
	}
	return ""
}
