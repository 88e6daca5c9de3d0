package session

import (
	"cmp"
	"net/http"
	"strings"
)

// Cookie configures the session's cookie. The zero value means "__Host-session; Path=/; HttpOnly; Secure;
// SameSite=Lax" without Domain and Max-Age. Browsers return that cookie only to this host, only over TLS, and only
// until they end.
//
// After a change of Domain, Path or Partitioned, browsers send both the old cookie and the new one. A request with two
// different tokens has no session, so change Name at the same time.
type Cookie struct {
	// Name is the cookie's name. Default: "__Host-session", or "session" with Insecure. A name that begins with
	// __Host-, __Secure-, __Http- or __Host-Http- must follow the rules that browsers have for it.
	Name string
	// Domain, if set, shares the cookie with all hosts below it, which can then also overwrite it. It cannot be
	// combined with a __Host- name such as the default.
	Domain string
	// Path is the cookie's path. Default: "/", the only path that a __Host- name allows.
	Path string
	// SameSite is the SameSite attribute. Default: Lax. None lets requests from other sites carry the session.
	SameSite http.SameSite
	// Partitioned gives a page that is embedded in other sites a separate cookie for each of these sites. Browsers
	// send the cookie in such a page only if SameSite is None. It cannot be combined with Insecure.
	Partitioned bool
	// Persistent keeps the cookie for AbsoluteTimeout, even when the browser ends.
	Persistent bool
	// Insecure omits Secure and the prefix of the default name, so that the cookie also works over plain HTTP,
	// where anyone on the network can read it. It is for development.
	Insecure bool
}

func (c Cookie) withDefaults() Cookie {
	if c.Name == "" && c.Insecure {
		c.Name = "session"
	}
	c.Name = cmp.Or(c.Name, "__Host-session")
	c.Path = cmp.Or(c.Path, "/")
	c.SameSite = cmp.Or(c.SameSite, http.SameSiteLaxMode)
	return c
}

// check returns an error if a field is invalid or contradicts another one. c must have its defaults. Like browsers, check
// ignores the case of prefixes of names.
func (c Cookie) check() error {
	name := strings.ToLower(c.Name)
	host := strings.HasPrefix(name, "__host-")
	secure := host || strings.HasPrefix(name, "__secure-") || strings.HasPrefix(name, "__http-")
	switch {
	case (&http.Cookie{Name: c.Name}).Valid() != nil:
		return optionError("Cookie.Name", "is not a valid cookie name")
	case c.Domain != "" && (&http.Cookie{Name: "n", Domain: c.Domain}).Valid() != nil:
		return optionError("Cookie.Domain", "is not a valid cookie domain")
	case !strings.HasPrefix(c.Path, "/") || (&http.Cookie{Name: "n", Path: c.Path}).Valid() != nil:
		return optionError("Cookie.Path", "must begin with / and be a valid cookie path")
	case c.SameSite < http.SameSiteLaxMode || c.SameSite > http.SameSiteNoneMode:
		return optionError("Cookie.SameSite", "must be Lax, Strict or None")
	case c.SameSite == http.SameSiteNoneMode && c.Insecure:
		return optionError("Cookie.SameSite", "is None, which requires Secure; Insecure omits it")
	case c.Insecure && secure:
		return optionError("Cookie.Insecure", "omits Secure, which a name that begins with __Host-, __Secure- or __Http- requires")
	case c.Insecure && c.Partitioned:
		return optionError("Cookie.Partitioned", "requires Secure; Insecure omits it")
	case host && c.Domain != "":
		return optionError("Cookie.Domain", "cannot be combined with a __Host- name (the default); set Cookie.Name, e.g. to __Secure-session")
	case host && c.Path != "/":
		return optionError("Cookie.Path", "must be / with a __Host- name (the default); set Cookie.Name, e.g. to __Secure-session")
	}
	return nil
}

// send adds the cookie to the response's header, and removes earlier lines for it. maxAge is in seconds. 0 means that the
// cookie ends with the browser, and a negative maxAge makes the browser delete it.
func (c Cookie) send(h http.Header, value string, maxAge int) {
	line := (&http.Cookie{
		Name: c.Name, Value: value, Domain: c.Domain, Path: c.Path, MaxAge: maxAge,
		Secure: !c.Insecure, HttpOnly: true, SameSite: c.SameSite, Partitioned: c.Partitioned,
	}).String()
	lines := make([]string, 0, len(h["Set-Cookie"])+1)
	for _, l := range h["Set-Cookie"] {
		if !strings.HasPrefix(l, c.Name+"=") {
			lines = append(lines, l)
		}
	}
	h["Set-Cookie"] = append(lines, line)
}
