package answer

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

func matchURL(w Want, text string) (bool, string) {
	ok, err := SameURL(w.Base, w.Value, text)
	if err != nil {
		return false, err.Error()
	}
	return ok, differs(ok, text, w.Value)
}

// SameURL says whether two URLs, relative to a base or absolute, name the same place.
// Counted are the origin, the path and the query as a bag. Not counted are the case of
// scheme and host, default ports, doubled and final slashes, ways of escaping, the order of
// the query, and the fragment unless the wanted URL has one. A URL that continues, or that
// only holds the other in its query, is another place.
func SameURL(base, want, got string) (bool, error) {
	w, err := parseURL(base, want)
	if err != nil {
		return false, fmt.Errorf("expected URL: %w", err)
	}
	g, err := parseURL(base, got)
	if err != nil {
		return false, nil
	}
	if w.Fragment == "" {
		g.Fragment = ""
	}
	return origin(w) == origin(g) && cleanPath(w) == cleanPath(g) && w.Fragment == g.Fragment &&
		slices.Equal(queryBag(w), queryBag(g)), nil
}

// parseURL reads an absolute URL, or a path under the origin of the base. A path that starts
// with two slashes is a path with a slash too many, not a host.
func parseURL(base, s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, " \t\r\n") {
		return nil, fmt.Errorf("%q is not a URL", s)
	}
	if strings.HasPrefix(s, "//") {
		s = "/" + strings.TrimLeft(s, "/")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", s)
	}
	if u.IsAbs() || base == "" {
		return u, nil
	}
	b, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", base)
	}
	if !strings.HasPrefix(s, "/") {
		return b.ResolveReference(u), nil
	}
	u.Scheme, u.Host, u.User = b.Scheme, b.Host, b.User
	return u, nil
}

func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}

func cleanPath(u *url.URL) string {
	return path.Clean("/" + u.Path)
}

func queryBag(u *url.URL) []string {
	var out []string
	for _, part := range strings.Split(u.RawQuery, "&") {
		if part == "" {
			continue
		}
		k, v, _ := strings.Cut(part, "=")
		out = append(out, unescape(k)+"\x00"+unescape(v))
	}
	slices.Sort(out)
	return out
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}
