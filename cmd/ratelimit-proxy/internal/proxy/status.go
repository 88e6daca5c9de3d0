package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/server"
)

// These are the names of request headers, in the spelling of net/http.
const (
	statusHeader = "X-Ratelimit-Status"
	tokenHeader  = "X-Ratelimit-Token"
)

// statusKey returns the part of a request's path after the path of the status API, still escaped. It returns false
// for other paths.
func (g *generation) statusKey(r *http.Request) (key string, ok bool) {
	if key, ok = strings.CutPrefix(r.URL.EscapedPath(), g.config.Status.Path); ok {
		return strings.CutPrefix(key, "/")
	}
	return "", false
}

// asksForStatus reports whether a request asks for its own status with a header. If the header's value is unclear, it
// returns an error, because the request should perhaps not be charged.
func asksForStatus(r *http.Request) (bool, error) {
	values := r.Header[statusHeader]
	if len(values) == 0 {
		return false, nil
	}
	if len(values) == 1 {
		switch strings.ToLower(values[0]) {
		case "true", "yes", "1":
			return true, nil
		case "false", "no", "0":
			return false, nil
		}
	}
	return false, server.Errorf(http.StatusBadRequest, "X-RateLimit-Status must be true, yes or 1 to ask for the status, or false, no or 0.")
}

var (
	errStatusOff     = server.Errorf(http.StatusNotFound, "The status is not available to any client.")
	errStatusRefused = server.Errorf(http.StatusForbidden, "The status is not available to this client.")
)

// authorizeStatus returns an error unless the request has the token or comes from an address in status.allow. If an
// untrusted proxy has forwarded the request, the client's address is unknown, and the result is also an error.
func (g *generation) authorizeStatus(r *http.Request, token string) error {
	s := &g.config.Status
	switch {
	case s.Token == "" && len(s.Allow) == 0:
		return errStatusOff
	case s.Token != "" && equalSecrets(token, s.Token):
		return nil
	}
	client := g.clients.address(r.Context(), r)
	if !containsAddr(g.statusAllow, client) || client == peerAddr(r) && isForwarded(r) {
		return errStatusRefused
	}
	return nil
}

func isForwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"},
		func(name string) bool { return len(r.Header[name]) > 0 })
}

// equalSecrets compares secrets in constant time.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// serveStatus answers GET <status path>/<key> with the status of this key.
func (g *generation) serveStatus(w http.ResponseWriter, r *http.Request, key string) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	var rule *rule
	err := g.authorizeStatus(r, token)
	switch {
	case err != nil:
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		err = server.Errorf(http.StatusMethodNotAllowed, "The status can only be read.")
	default:
		rule, r, err = g.requestFor(r, key)
	}
	g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		if err != nil {
			return err
		}
		return answerUnavailable(g.p.log, w, req, g.writeStatus(w, req, rule))
	}).ServeHTTP(w, r)
}

// requestFor returns the rule that r asks about, and a made-up request that has the escaped key. If there is an
// error, it returns r instead.
func (g *generation) requestFor(r *http.Request, escaped string) (*rule, *http.Request, error) {
	value, err := url.PathUnescape(escaped)
	if err != nil || value == "" {
		return nil, r, server.Errorf(http.StatusBadRequest, "The key, URL-encoded, must follow %s/.", g.config.Status.Path)
	}
	of, err := g.ruleByName(r.URL.Query().Get("rule"))
	if err != nil {
		return nil, r, err
	}
	part, _ := of.key.Only()
	out := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}, Body: http.NoBody,
		Host: r.Host, RemoteAddr: r.RemoteAddr, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
	}).WithContext(r.Context())
	switch part.Kind {
	case "client":
		a, err := netip.ParseAddr(value)
		if err != nil {
			return nil, r, server.Errorf(http.StatusBadRequest, "The rule %s counts by address, and %q is not one.", of.Name, value)
		}
		out.RemoteAddr = netip.AddrPortFrom(a, 0).String()
	case "header":
		out.Header[part.Name] = []string{value}
	case "cookie":
		out.AddCookie(&http.Cookie{Name: part.Name, Value: value})
	case "query":
		out.URL.RawQuery = url.Values{part.Name: {value}}.Encode()
	case "host":
		if _, ok := config.ParseHost(value); !ok {
			return nil, r, server.Errorf(http.StatusBadRequest, "The rule %s counts by host, and %q is not one.", of.Name, value)
		}
		out.Host = value
	case "path":
		out.URL.Path = value
	case "method":
		out.Method = value
	}
	return of, out, nil
}

// ruleByName returns the rule with a name, whose key must be a single value. If name is empty, it returns the first
// rule whose key is a single value.
func (g *generation) ruleByName(name string) (*rule, error) {
	for _, r := range g.rules {
		_, single := r.key.Only()
		switch {
		case single && (name == "" || name == r.Name):
			return r, nil
		case name == r.Name:
			return nil, server.Errorf(http.StatusBadRequest,
				"The key of the rule %s has several parts: send X-RateLimit-Status with a request that has them.", name)
		}
	}
	if name != "" {
		return nil, server.Errorf(http.StatusNotFound, "There is no rule %q.", name)
	}
	return nil, server.Errorf(http.StatusNotFound, "No rule counts by a single value.")
}

// answerStatus answers a request that asks for its own status with a header.
func (f *forwarding) answerStatus(r *http.Request, rules []*rule) error {
	if err := f.g.authorizeStatus(r, r.Header.Get(tokenHeader)); err != nil {
		return err
	}
	if name := r.URL.Query().Get("rule"); name != "" {
		rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.Name != name })
	}
	return f.g.writeStatus(f.w, f.req, rules...)
}

// writeStatus responds with the status of the rule that has the fewest units remaining.
func (g *generation) writeStatus(w http.ResponseWriter, req *server.Request, rules ...*rule) error {
	var least *status
	var unknown error
	ctx := req.Context()
	for _, rule := range rules {
		res, err := rule.policy.Peek(ctx)
		switch {
		case errors.Is(err, ratelimit.ErrNoKey) && rule.Missing == config.Skip:
			continue
		case err != nil:
			return fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		if res.Source == ratelimit.FromShadow { // the result is not enforced
			if !rule.Shadow { // the rule is open, and Redis is down
				unknown = &layer.UnavailableError{Err: fmt.Errorf("the quota of the rule %s is unknown", rule.Name)}
			}
			continue
		}
		s := newStatus(res, rule.resultLimit(req.Request, &g.clients, res), g.p.now())
		subject, _ := rule.policy.Subject(ctx) // no error, since Peek has used it
		s.Denials = g.p.denials.denialsInARow(subject, g.p.now())
		if least == nil || s.Remaining < least.Remaining {
			least = &s
		}
	}
	switch {
	case least != nil:
	case unknown != nil:
		return unknown
	default:
		return server.Errorf(http.StatusNotFound, "No rule limits this request.")
	}
	text, err := json.Marshal(least)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(append(text, '\n'))
	return err
}
