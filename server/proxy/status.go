package proxy

import (
	"cmp"
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

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// The request's fields, as net/http keeps them in a map.
const (
	statusHeader = "X-Ratelimit-Status"
	tokenHeader  = "X-Ratelimit-Token"
)

// statusAPI is a [Status] that was checked.
type statusAPI struct {
	path   string // with a slash at the end, "" if it is nowhere
	header bool
	allow  []netip.Prefix
	token  string
}

func newStatusAPI(s Status, f *faults) statusAPI {
	api := statusAPI{header: s.Header == nil || *s.Header, allow: prefixes(s.Allow), token: s.Token}
	if p := cmp.Or(s.Path, "/status"); p != "off" {
		if !strings.HasPrefix(p, "/") || strings.Trim(p, "/") == "" {
			f.addf("status.path", "%q, want a path such as /status, or off", p)
		}
		api.path = strings.TrimSuffix(p, "/") + "/"
	}
	return api
}

// asks returns what comes after the status path, and whether r is for that.
func (s *statusAPI) asks(r *http.Request) (key string, ok bool) {
	if s.path == "" {
		return "", false
	}
	return strings.CutPrefix(r.URL.EscapedPath(), s.path)
}

// asksItself tells whether a request asks for its own status. Its header is true, yes or 1,
// or false, no or 0, in any case: what is none of them may be meant to ask, and isn't passed on.
func (s *statusAPI) asksItself(r *http.Request) (bool, error) {
	values := r.Header[statusHeader]
	if !s.header || len(values) == 0 {
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
	return false, server.Errorf(http.StatusBadRequest, "X-RateLimit-Status should be true, yes or 1 to ask for the status, or false, no or 0.")
}

// permits returns why a request may not ask, nil if it may: it has the token, or comes from
// an address that the configuration names. What somebody has forwarded who isn't a trusted
// proxy comes from nobody knows where.
func (g *generation) permits(r *http.Request, token string) error {
	s := &g.status
	switch {
	case s.token == "" && len(s.allow) == 0:
		return errStatusForNobody
	case s.token != "" && sameSecret(token, s.token):
		return nil
	}
	client := g.clients.address(r.Context(), r)
	if !client.IsValid() || !netaddr.Within(s.allow, client) || client == peer(r) && isForwarded(r) {
		return errStatusRefused
	}
	return nil
}

func isForwarded(r *http.Request) bool {
	for _, name := range [...]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return false
}

// sameSecret compares without telling by its time how much is right.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

var (
	errStatusForNobody = server.Errorf(http.StatusNotFound, "No client may ask for the status: the configuration names none.")
	errStatusRefused   = server.Errorf(http.StatusForbidden, "The status is not for this client.")
)

// serveStatus answers GET <status path>/<key>: how much a key has used, as a request that
// has it would see it.
func (g *generation) serveStatus(w http.ResponseWriter, r *http.Request, escaped string) {
	var answer server.HandlerFunc
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	refused := g.permits(r, token)
	switch {
	case refused != nil:
		answer = refusing(refused)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		answer = refusing(server.Errorf(http.StatusMethodNotAllowed, "The status can only be read."))
	default:
		of, asking, err := g.inTheNameOf(r, escaped)
		if err != nil {
			answer = refusing(err)
			break
		}
		r = asking
		answer = func(w http.ResponseWriter, req *server.Request) error {
			return unchecked(g.p.log, w, req, g.tellStatus(w, req, []*rule{of}))
		}
	}
	g.srv.WrapFunc(answer).ServeHTTP(w, r)
}

func refusing(err error) server.HandlerFunc {
	return func(http.ResponseWriter, *server.Request) error { return err }
}

// inTheNameOf returns the rule that r asks about, and a request that the rule counts by
// the key.
func (g *generation) inTheNameOf(r *http.Request, escaped string) (*rule, *http.Request, error) {
	value, err := url.PathUnescape(escaped)
	if err != nil || value == "" {
		return nil, nil, server.Errorf(http.StatusBadRequest, "After %s comes the key, URL-encoded.", g.status.path)
	}
	of, err := g.askedRule(r.URL.Query().Get("rule"))
	if err != nil {
		return nil, nil, err
	}
	p, _ := of.key.only()
	asking := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}, Body: http.NoBody,
		Host: r.Host, RemoteAddr: r.RemoteAddr, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
	}).WithContext(r.Context())
	switch p.kind {
	case "client":
		a, err := netip.ParseAddr(value)
		if err != nil {
			return nil, nil, server.Errorf(http.StatusBadRequest, "The rule %s counts by addresses, and %q is none.", of.Name, value)
		}
		asking.RemoteAddr = netip.AddrPortFrom(a, 0).String()
	case "header":
		asking.Header[p.name] = []string{value}
	case "cookie":
		asking.AddCookie(&http.Cookie{Name: p.name, Value: value})
	case "query":
		asking.URL.RawQuery = url.Values{p.name: {value}}.Encode()
	case "host":
		if _, ok := parseHost(value); !ok {
			return nil, nil, server.Errorf(http.StatusBadRequest, "The rule %s counts by hosts, and %q is none.", of.Name, value)
		}
		asking.Host = value
	case "path":
		asking.URL.Path = value
	case "method":
		asking.Method = value
	}
	return of, asking, nil
}

// askedRule returns the rule of a name, or the first that a single value tells the key of.
func (g *generation) askedRule(name string) (*rule, error) {
	if name != "" {
		r := g.byName[name]
		if r == nil {
			return nil, server.Errorf(http.StatusNotFound, "There is no rule %q.", name)
		}
		if _, ok := r.key.only(); !ok {
			return nil, server.Errorf(http.StatusBadRequest,
				"The key of the rule %s has several parts: ask with X-RateLimit-Status in a request that has them.", name)
		}
		return r, nil
	}
	for _, r := range g.rules {
		if _, ok := r.key.only(); ok {
			return r, nil
		}
	}
	return nil, server.Errorf(http.StatusNotFound, "No rule counts by a single value.")
}

// answerStatus answers a request that asks about itself.
func (x *exchange) answerStatus(r *http.Request, rules []*rule) error {
	if err := x.g.permits(r, r.Header.Get(tokenHeader)); err != nil {
		return err
	}
	if name := r.URL.Query().Get("rule"); name != "" {
		rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.Name != name })
	}
	return x.g.tellStatus(x.w, x.req, rules)
}

// tellStatus writes the status by the rule with the least left.
func (g *generation) tellStatus(w http.ResponseWriter, req *server.Request, rules []*rule) error {
	var out told
	var unknown *untold
	found := false
	for _, rule := range rules {
		res, err := rule.of(req).Peek()
		switch {
		case errors.Is(err, ratelimit.ErrNoKey) && rule.Missing == skip:
			continue
		case err != nil:
			return fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		if res.Source == ratelimit.FromShadow { // which limits nothing
			if !rule.Shadow && unknown == nil { // for now
				unknown = &untold{g.speaking(rule, req.Request, res).Burst(), "unavailable"}
			}
			continue
		}
		t := tell(res, g.speaking(rule, req.Request, res), g.p.now())
		subject, _ := rule.of(req).Subject() // the peek has found it
		t.Beyond = g.p.beyond.of(subject, g.p.now())
		if !found || t.Remaining < out.Remaining {
			out, found = t, true
		}
	}
	var answer any = out
	switch {
	case found:
	case unknown != nil:
		answer = unknown
	default:
		return server.Errorf(http.StatusNotFound, "No rule limits this request.")
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(append(text, '\n'))
	return err
}
