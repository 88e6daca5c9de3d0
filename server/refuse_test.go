package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

func nothing(http.ResponseWriter, *server.Request) error { return nil }

func TestNilHandlersAreRefused(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	const route = `server: route "/a": the handler is nil`
	require.PanicsWithValue(t, route, func() { srv.HandleFunc("/a", nil) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", nil) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", http.HandlerFunc(nil)) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", (*http.ServeMux)(nil)) })
	require.PanicsWithValue(t, "server: Wrap: the handler is nil", func() { srv.Wrap(nil) })
	require.PanicsWithValue(t, "server: Wrap: the handler is nil", func() { srv.Wrap((*http.ServeMux)(nil)) })
	require.PanicsWithValue(t, "server: WrapFunc: the handler is nil", func() { srv.WrapFunc(nil) })
	srv.HandleFunc("/a", nothing) // nothing was registered
}

func TestRefusedOptions(t *testing.T) {
	observer := &quietObserver{}
	for field, o := range map[string]server.Options{
		"Options.Session":            {Session: session.Options{IdleTimeout: -1}},
		"Options.Params":             {Params: params.Options{MaxBody: -1}},
		"Options.RateLimits":         {RateLimits: []*ratelimit.Policy{{Name: "no key"}}},
		"Options.SessionStore":       {SessionStore: (*memstore.Store)(nil)},
		"Options.RateLimitStore":     {RateLimitStore: (*ratestore.Store)(nil)},
		"Options.Observers[1]":       {Observers: []server.Observer{observer, nil}},
		"Options.Observers[0]":       {Observers: []server.Observer{(*quietObserver)(nil)}},
		"Options.ReadHeaderTimeout":  {ReadHeaderTimeout: 2 * time.Minute, ReadTimeout: time.Minute},
		"Options.Params.ReadTimeout": {ReadTimeout: time.Minute, Params: params.Options{ReadTimeout: 2 * time.Minute}},
		"Options.WriteTimeout":       {WriteTimeout: 1 << 62},
		"Options.MaxHeaderBytes":     {MaxHeaderBytes: -1},
	} {
		_, err := server.New(o)
		require.ErrorContains(t, err, "server: "+field)
		var wrong *server.OptionError
		if errors.As(err, &wrong) && wrong.Package == "server" {
			require.Equal(t, field, wrong.Field)
		}
	}
	for _, o := range []server.Options{
		{ReadTimeout: time.Second},
		{Params: params.Options{ReadTimeout: 5 * time.Minute}},
		{ReadTimeout: -1, ReadHeaderTimeout: time.Hour},
	} {
		_, err := server.New(o)
		require.NoError(t, err)
	}
}

type quietObserver struct{ _ int }

func (*quietObserver) RequestEnd(context.Context, server.RequestInfo) {}

func TestFailedCleanUpNamesItsRequest(t *testing.T) {
	for want, cleanUp := range map[string]func() error{
		`reqctx: closing "OnClose": why`:                          func() error { return errors.New("why") },
		`reqctx: closing "OnClose": lazy: OnClose panicked: what`: func() error { panic("what") },
	} {
		srv, log := newServer(t, server.Options{})
		srv.HandleFunc("/a", func(_ http.ResponseWriter, req *server.Request) error { req.OnClose(cleanUp); return nil })
		ask(srv, "POST", "/a")
		line := log.only(t)
		require.Equal(t, []any{"request clean-up failed", "POST", "/a", want}, []any{line["msg"], line["method"], line["path"], line["error"]})
		stack, panicked := line["stack"].(string)
		require.Equal(t, strings.Contains(want, "panicked"), panicked)
		require.Equal(t, panicked, strings.Contains(stack, "refuse_test.go"))
	}
}

func TestCrossOriginRequests(t *testing.T) {
	const forbidden = `{"status":403,"title":"Forbidden","detail":"This is a cross-origin browser request, which this server does not allow: ` +
		`its Origin or Sec-Fetch-Site header names another site. To allow an origin, the server adds it to server.Options.CrossOrigin."}`
	trusting := http.NewCrossOriginProtection()
	require.NoError(t, trusting.AddTrustedOrigin("https://friend.example"))
	trusting.AddInsecureBypassPattern("POST /hook")
	for name, o := range map[string]server.Options{
		"default":  {},
		"trusting": {CrossOrigin: trusting},
		"insecure": {InsecureAllowCrossOrigin: true},
		"both":     {CrossOrigin: trusting, InsecureAllowCrossOrigin: true},
	} {
		all := o.InsecureAllowCrossOrigin
		some := o.CrossOrigin != nil || all
		for what, tt := range map[string]struct {
			method, path, site, origin string
			allowed                    bool
		}{
			"cross-site":         {"POST", "/", "cross-site", "https://evil.example", all},
			"same-site":          {"POST", "/", "same-site", "https://www.example.com", all},
			"old browser":        {"POST", "/", "", "https://evil.example", all},
			"same-origin":        {"POST", "/", "same-origin", "https://example.com", true},
			"curl":               {"POST", "/", "", "", true},
			"GET":                {"GET", "/", "cross-site", "https://evil.example", true},
			"friend":             {"POST", "/", "cross-site", "https://friend.example", some},
			"friend without TLS": {"POST", "/", "cross-site", "http://friend.example", all},
			"hook":               {"POST", "/hook", "cross-site", "https://evil.example", some},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				srv, l := newServer(t, o)
				provideMark(srv)
				called := false
				srv.HandleFunc("/", marked(func(w http.ResponseWriter, _ *server.Request) error {
					called = true
					return writeText(w, "ok")
				}))
				plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					called = true
					_, _ = io.WriteString(w, "ok")
				})
				for _, h := range []http.Handler{srv, srv.Wrap(plain), srv.Wrap(srv)} {
					called = false
					r := httptest.NewRequest(tt.method, "http://example.com"+tt.path, nil)
					r.Header.Set("Sec-Fetch-Site", tt.site)
					r.Header.Set("Origin", tt.origin)
					res := send(h, r)
					require.Equal(t, tt.allowed, called)
					if tt.allowed {
						require.Equal(t, 200, res.StatusCode)
						require.Equal(t, "ok", res.body)
						continue
					}
					requireProblem(t, 403, forbidden, res)
					require.Empty(t, res.Header["X-Mark"], "no property was needed")
				}
				require.Empty(t, l.at(""), "a client's fault is not logged")
			})
		}
	}
}
