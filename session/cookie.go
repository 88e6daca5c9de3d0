package session

import (
	"errors"
	"net/http"
	"strings"
)

// Cookie says how the session's cookie is sent. The zero value is
// "__Host-session; Path=/; HttpOnly; Secure; SameSite=Lax" without Domain and
// Max-Age: only this host sends it back, only over TLS, until the browser ends.
type Cookie struct {
	// Name is "" for "__Host-session", or "session" with Insecure. A name that
	// begins with __Host- or __Secure- is held to what browsers ask of it.
	Name string

	// Domain, if set, shares the cookie with all hosts below it, which can then
	// also overwrite it. It rules out a __Host- name, the default included.
	Domain string

	// Path is "" for "/", the only one that goes with a __Host- name.
	Path string

	// SameSite is 0 for Lax. None lets other sites' requests carry the session.
	SameSite http.SameSite

	// Persistent keeps the cookie when the browser ends, for AbsoluteTimeout.
	Persistent bool

	// Insecure drops Secure, and the prefix of the default name, so that the
	// cookie also works over plain HTTP: anyone on the way can then read it. It
	// is for development.
	Insecure bool
}

const hostPrefix = "__Host-"

func (c Cookie) withDefaults() Cookie {
	if c.Name == "" {
		c.Name = hostPrefix + "session"
		if c.Insecure {
			c.Name = "session"
		}
	}
	if c.Path == "" {
		c.Path = "/"
	}
	if c.SameSite == 0 {
		c.SameSite = http.SameSiteLaxMode
	}
	return c
}

// check expects defaults to be filled in.
func (c Cookie) check() error {
	if err := (&http.Cookie{Name: c.Name}).Valid(); err != nil {
		return errors.New("session: Options.Cookie.Name: not a valid cookie name")
	}
	if c.Domain != "" && (&http.Cookie{Name: "n", Domain: c.Domain}).Valid() != nil {
		return errors.New("session: Options.Cookie.Domain: not a valid cookie domain")
	}
	if !strings.HasPrefix(c.Path, "/") || (&http.Cookie{Name: "n", Path: c.Path}).Valid() != nil {
		return errors.New("session: Options.Cookie.Path: must begin with / and be a valid cookie path")
	}
	switch c.SameSite {
	case http.SameSiteLaxMode, http.SameSiteStrictMode:
	case http.SameSiteNoneMode:
		if c.Insecure {
			return errors.New("session: Options.Cookie.SameSite: None needs Secure, which Insecure drops")
		}
	default:
		return errors.New("session: Options.Cookie.SameSite: must be Lax, Strict or None")
	}
	return c.checkPrefix()
}

// checkPrefix refuses what browsers refuse. They compare prefixes without case.
func (c Cookie) checkPrefix() error {
	name := strings.ToLower(c.Name)
	host := strings.HasPrefix(name, "__host-")
	switch {
	case c.Insecure && (host || strings.HasPrefix(name, "__secure-") || strings.HasPrefix(name, "__http-")):
		return errors.New("session: Options.Cookie.Insecure: a name that begins with __Host- or __Secure- needs Secure")
	case host && c.Domain != "":
		return errors.New("session: Options.Cookie.Domain: cannot go with a __Host- name (the default); name the cookie, e.g. __Secure-session")
	case host && c.Path != "/":
		return errors.New("session: Options.Cookie.Path: must be / with a __Host- name (the default); name the cookie, e.g. __Secure-session")
	}
	return nil
}

// find returns the token in the request's cookies. sent says whether there was a
// cookie of the name at all, whatever its shape. Two cookies with different tokens
// are no token: one of them may have been planted from a neighbouring host.
func (c Cookie) find(r *http.Request) (t token, ok, sent bool) {
	if r == nil {
		return token{}, false, false
	}
	var texts []string
	for _, hc := range r.CookiesNamed(c.Name) {
		sent = true
		if !hc.Quoted {
			texts = append(texts, hc.Value)
		}
	}
	t, ok = onlyToken(texts)
	return t, ok, sent
}

// send makes the response set the cookie, in place of any other line for it. A
// negative maxAge expires it, 0 lets it end with the browser; otherwise seconds.
func (c Cookie) send(h http.Header, value string, maxAge int) {
	line := (&http.Cookie{
		Name: c.Name, Value: value, Domain: c.Domain, Path: c.Path, MaxAge: maxAge,
		Secure: !c.Insecure, HttpOnly: true, SameSite: c.SameSite,
	}).String()
	lines := make([]string, 0, len(h["Set-Cookie"])+1)
	for _, l := range h["Set-Cookie"] {
		if !strings.HasPrefix(l, c.Name+"=") {
			lines = append(lines, l)
		}
	}
	h["Set-Cookie"] = append(lines, line)
}

// vary is the request header that the session depends on.
func (Cookie) vary() string { return "Cookie" }
