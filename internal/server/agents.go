package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/pommelgym/pommel/internal/fault"
)

// agents makes and reads the tokens with which agents act through MCP. A token names
// its episode and proves that this server gave it out; it opens nothing else. The key
// dies with the process, as its episodes do.
type agents struct{ key [32]byte }

const agentPrefix = "agent."

func newAgents() agents {
	var a agents
	_, _ = rand.Read(a.key[:]) // never fails: crypto/rand ends the program instead
	return a
}

func (a agents) token(episode string) string {
	return agentPrefix + hex.EncodeToString(a.sum(episode)) + "." + episode
}

// episode is the one that token was made for.
func (a agents) episode(token string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(token, agentPrefix)
	if !ok {
		return "", false
	}
	sum, id, _ := strings.Cut(rest, ".")
	got, err := hex.DecodeString(sum)
	if err != nil || !hmac.Equal(got, a.sum(id)) {
		return "", false
	}
	return id, true
}

// episodeHeader names the episode of a request that came with the server's own token, or
// over loopback without one.
const episodeHeader = "Pommel-Episode"

// named is the episode that a request's headers name. An agent's token names its own and
// no other, whatever stands beside it.
func (a agents) named(h http.Header) (id string, err error) {
	token, own := strings.CutPrefix(h.Get("Authorization"), "Bearer "+agentPrefix)
	if own {
		id, own = a.episode(agentPrefix + token)
	} else {
		id = h.Get(episodeHeader)
		own = id != ""
	}
	if !own {
		return "", fault.New(fault.InvalidArgument, "the request names no episode").
			WithHint("send the episode's agent token as Authorization: Bearer")
	}
	return id, nil
}

func (a agents) sum(episode string) []byte {
	h := hmac.New(sha256.New, a.key[:])
	h.Write([]byte(episode))
	return h.Sum(nil)
}
