package session

import (
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

func TestImpossibleOptionsFailNamingTheField(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		o     Options
		field string
	}{
		"__Host- with Domain, by default": {Options{Cookie: Cookie{Domain: "example.com"}}, "Cookie.Domain"},
		"__host- in small letters":        {Options{Cookie: Cookie{Name: "__host-s", Domain: "example.com"}}, "Cookie.Domain"},
		"__Host- with Path, by default":   {Options{Cookie: Cookie{Path: "/app"}}, "Cookie.Path"},
		"__Host- and not Secure":          {Options{Cookie: Cookie{Name: "__Host-s", Insecure: true}}, "Cookie.Insecure"},
		"__Secure- and not Secure":        {Options{Cookie: Cookie{Name: "__Secure-s", Insecure: true}}, "Cookie.Insecure"},
		"__Http- and not Secure":          {Options{Cookie: Cookie{Name: "__Http-s", Insecure: true}}, "Cookie.Insecure"},
		"__Host-Http- and not Secure":     {Options{Cookie: Cookie{Name: "__Host-Http-s", Insecure: true}}, "Cookie.Insecure"},
		"__Host-Http- with Domain":        {Options{Cookie: Cookie{Name: "__Host-Http-s", Domain: "example.com"}}, "Cookie.Domain"},
		"__host-http- with Path":          {Options{Cookie: Cookie{Name: "__host-http-s", Path: "/app"}}, "Cookie.Path"},
		"Partitioned and not Secure":      {Options{Cookie: Cookie{Partitioned: true, Insecure: true}}, "Cookie.Partitioned"},
		"SameSite=None and not Secure":    {Options{Cookie: Cookie{SameSite: http.SameSiteNoneMode, Insecure: true}}, "Cookie.SameSite"},
		"SameSite left to the browser":    {Options{Cookie: Cookie{SameSite: http.SameSiteDefaultMode}}, "Cookie.SameSite"},
		"name with a space":               {Options{Cookie: Cookie{Name: "my session"}}, "Cookie.Name"},
		"name with a line break":          {Options{Cookie: Cookie{Name: "a\r\nX: y"}}, "Cookie.Name"},
		"path without slash":              {Options{Cookie: Cookie{Name: "s", Path: "app"}}, "Cookie.Path"},
		"path with a semicolon":           {Options{Cookie: Cookie{Name: "s", Path: "/a; Domain=x"}}, "Cookie.Path"},
		"domain with a semicolon":         {Options{Cookie: Cookie{Name: "s", Domain: "a.com; x"}}, "Cookie.Domain"},
		"negative idle":                   {Options{IdleTimeout: -1}, "IdleTimeout"},
		"negative absolute":               {Options{AbsoluteTimeout: -1}, "AbsoluteTimeout"},
		"negative remember-me":            {Options{RememberFor: -1}, "RememberFor"},
		"remember-me below absolute":      {Options{RememberFor: 23 * time.Hour}, "RememberFor"},
		"remember-me beyond 400 days":     {Options{RememberFor: 400*24*time.Hour + 1}, "RememberFor"},
		"remember-me is never":            {Options{RememberFor: math.MaxInt64}, "RememberFor"},
		"negative size":                   {Options{MaxBytes: -1}, "MaxBytes"},
		"negative maximum per user":       {Options{MaxPerUser: -1}, "MaxPerUser"},
		"header and cookie":               {Options{Header: "X-Token", Cookie: Cookie{Insecure: true}}, "Cookie"},
		"header with a space":             {Options{Header: "X Token"}, "Header"},
		"header with a colon":             {Options{Header: "X-Token:"}, "Header"},
		"header that is a cookie":         {Options{Header: "cookie"}, "Header"},
		"authorization without a scheme":  {Options{Header: "AUTHORIZATION"}, "HeaderScheme"},
		"scheme without a header":         {Options{HeaderScheme: "Bearer"}, "HeaderScheme"},
		"scheme with a space":             {Options{Header: "Authorization", HeaderScheme: "Bearer "}, "HeaderScheme"},
		"scheme with a line break":        {Options{Header: "Authorization", HeaderScheme: "a\r\nX: y"}, "HeaderScheme"},
		"scheme and a proxy's header":     {Options{Header: "Proxy-Authorization", HeaderScheme: "Bearer"}, "Header"},
		"idle above the default absolute": {Options{IdleTimeout: 48 * time.Hour}, "IdleTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(store, tt.o)
			require.ErrorContains(t, err, "session: Options."+tt.field+" ")
			var wrong *option.Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "Options."+tt.field, wrong.Field)
			require.Nil(t, m)
		})
	}
}

func TestPossibleOptions(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	_, err = New(nil, Options{})
	require.ErrorContains(t, err, "session: New: store is nil")
	_, err = New((*memstore.Store)(nil), Options{})
	require.ErrorContains(t, err, "session: New: store is nil")
	for _, o := range []Options{
		{},
		{Cookie: Cookie{Name: "__Host-id", Path: "/", SameSite: http.SameSiteNoneMode}},
		{Cookie: Cookie{Name: "__Secure-id", Domain: "example.com", Path: "/app"}},
		{Cookie: Cookie{Name: "__Http-id", Domain: "example.com", Path: "/app"}},
		{Cookie: Cookie{Name: "__Host-Http-id", Partitioned: true}},
		{Cookie: Cookie{Insecure: true, Path: "/app", Domain: "localhost"}},
		{IdleTimeout: time.Hour, AbsoluteTimeout: time.Hour},
		{Header: "X-Session-Token"},
		{Header: "x_auth.2"},
		{Header: "authorization", HeaderScheme: "Bearer"},
		{MaxBytes: 1000},
		{RememberFor: 400 * 24 * time.Hour},
		{RememberFor: time.Hour, AbsoluteTimeout: time.Hour},
	} {
		_, err := New(store, o)
		require.NoError(t, err)
	}
	m, err := New(store, Options{AbsoluteTimeout: 10 * time.Minute})
	require.NoError(t, err)
	require.Equal(t, storage.Limits{Idle: 10 * time.Minute, Absolute: 10 * time.Minute, Touch: time.Minute}, m.limits)
}

func TestCookieLines(t *testing.T) {
	for name, tt := range map[string]struct {
		c      Cookie
		maxAge int
		want   string
	}{
		"default":    {Cookie{}, 0, "__Host-session=v; Path=/; HttpOnly; Secure; SameSite=Lax"},
		"insecure":   {Cookie{Insecure: true}, 0, "session=v; Path=/; HttpOnly; SameSite=Lax"},
		"persistent": {Cookie{}, 60, "__Host-session=v; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax"},
		"expired":    {Cookie{}, -1, "__Host-session=v; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"},
		"all": {Cookie{Name: "__Secure-s", Domain: "example.com", Path: "/app", SameSite: http.SameSiteStrictMode}, 0,
			"__Secure-s=v; Path=/app; Domain=example.com; HttpOnly; Secure; SameSite=Strict"},
		"partitioned": {Cookie{Name: "__Host-Http-s", SameSite: http.SameSiteNoneMode, Partitioned: true}, 0,
			"__Host-Http-s=v; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"},
		"expired partition": {Cookie{Partitioned: true}, -1,
			"__Host-session=v; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax; Partitioned"},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			tt.c.withDefaults().send(h, "v", tt.maxAge)
			require.Equal(t, []string{tt.want}, h["Set-Cookie"])
		})
	}
}

// TestInsecureCookieComesBackOverPlainHTTP uses a cookie jar that, like browsers, sends Secure cookies only over TLS.
func TestInsecureCookieComesBackOverPlainHTTP(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		plain := &url.URL{Scheme: "http", Host: "192.0.2.1:8080", Path: "/login"}
		tt, err := newTransport(Options{Cookie: Cookie{Insecure: insecure}})
		require.NoError(t, err)
		tok, text := newToken(newLocator())
		h := http.Header{}
		tt.send(h, text, 0)
		jar.SetCookies(plain, (&http.Response{Header: h}).Cookies())

		r := &http.Request{Header: http.Header{}}
		for _, sent := range jar.Cookies(plain) {
			r.AddCookie(sent)
		}
		found, ok, _ := tt.find(r)
		require.Equal(t, insecure, ok)
		require.True(t, !ok || found == tok)
	}
}

func TestSendReplacesOnlyItsOwnLine(t *testing.T) {
	h := http.Header{"Set-Cookie": {"a=1", "session=old", "sessions=2"}}
	c := Cookie{Insecure: true}.withDefaults()
	c.send(h, "x", 0)
	c.send(h, "y", 0)
	require.Len(t, h["Set-Cookie"], 3)
	require.Equal(t, []string{"a=1", "sessions=2"}, h["Set-Cookie"][:2])
	require.True(t, strings.HasPrefix(h["Set-Cookie"][2], "session=y;"))
}

func TestCacheControlIsMadePrivate(t *testing.T) {
	for have, want := range map[string]string{
		"":                              "private",
		"public, max-age=60":            "private, max-age=60",
		"PUBLIC, S-MaxAge=9, max-age=6": "private, max-age=6",
		"max-age=60, must-revalidate":   "private, max-age=60, must-revalidate",
		"private, max-age=60":           "private, max-age=60",
		"Private, max-age=60":           "private, max-age=60",
		"no-cache":                      "private, no-cache",
		"no-store":                      "no-store",
		"public, No-Store":              "public, No-Store",
		`private="x-user", max-age=1`:   `private, private="x-user", max-age=1`,
	} {
		h := http.Header{}
		if have != "" {
			h.Set("Cache-Control", have)
		}
		makePrivate(h)
		require.Equal(t, []string{want}, h["Cache-Control"], have)
	}
	h := http.Header{"Cache-Control": {"public", "max-age=5"}}
	makePrivate(h)
	require.Equal(t, []string{"private, max-age=5"}, h["Cache-Control"])
}

// TestCacheControlForSharedCachesIsRemoved checks header fields that some caches obey instead of Cache-Control.
func TestCacheControlForSharedCachesIsRemoved(t *testing.T) {
	for _, own := range []string{"max-age=60", "no-store"} {
		h := http.Header{"Cache-Control": {own}, "Date": {"now"}}
		for _, name := range []string{"CDN-Cache-Control", "Cloudflare-CDN-Cache-Control", "Surrogate-Control"} {
			h.Set(name, "max-age=600")
		}
		makePrivate(h)
		require.Len(t, h, 2)
		require.Equal(t, "now", h.Get("Date"))
		require.Contains(t, []string{"private, max-age=60", "no-store"}, h.Get("Cache-Control"))
	}
}
