package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

const tokenHeader = "X-Session-Token"

// ask runs a request that has these values of the token's header, and returns the response's header.
func ask(t *testing.T, s *site, lines []string, handler func(ctx context.Context, v session.Session)) http.Header {
	t.Helper()
	c := reqctx.New(t.Context(), s.reg)
	r := httptest.NewRequestWithContext(c, http.MethodGet, "/", nil)
	for _, line := range lines {
		r.Header.Add(tokenHeader, line)
	}
	c.SetRequest(r)
	handler(c, from(t, c))
	h := must(s.end(t, c))
	return h
}

func TestHeaderToken(t *testing.T) {
	s := newSite(t, session.Options{Header: "x-session-token"})
	set := func(ctx context.Context, _ session.Session) { require.NoError(t, userField.Set(ctx, "ada")) }
	user := func(lines ...string) (user string) {
		h := ask(t, s, lines, func(ctx context.Context, _ session.Session) {
			var err error
			user, err = userField.Get(ctx)
			require.NoError(t, err)
		})
		require.Equal(t, http.Header{"Vary": {tokenHeader}}, h)
		return user
	}
	h := ask(t, s, nil, set)
	token := h.Get(tokenHeader)
	require.Len(t, token, 66)
	require.Equal(t, http.Header{tokenHeader: {token}, "Vary": {tokenHeader}, "Cache-Control": {"private"}}, h)
	require.Equal(t, "ada", user(token))
	require.Equal(t, "ada", user(token, token))

	before := s.store.calls()
	require.Empty(t, user())
	require.Empty(t, user(""))
	require.Empty(t, user("Bearer "+token))
	require.Empty(t, user(token+","+token))
	require.Empty(t, user(strings.ToLower(token)+"x"))
	require.Equal(t, before, s.store.calls(), "malformed ones make no store call")
	other := ask(t, s, nil, set).Get(tokenHeader)
	require.Empty(t, user(token, other), "two are none")

	renewed := ask(t, s, []string{token}, renew).Get(tokenHeader)
	require.NotEqual(t, token, renewed)
	h = ask(t, s, []string{renewed}, func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) })
	require.Equal(t, []string{""}, h[tokenHeader], "the client is to forget it")
	require.Equal(t, "private", h.Get("Cache-Control"))
	require.Empty(t, user(renewed))
	for _, name := range []string{"session", "__Host-session", tokenHeader} {
		require.Empty(t, s.user(t, name+"="+other), "a cookie does not count")
	}
}

func TestHeaderTokenWithScheme(t *testing.T) {
	s := newSite(t, session.Options{Header: "authorization", HeaderScheme: "Bearer"})
	do := func(lines []string, handler func(session.Session)) string {
		c := s.begin(t, "")
		c.Request().Header["Authorization"] = lines
		handler(from(t, c))
		h := must(s.end(t, c))
		require.Contains(t, h["Vary"], "Authorization")
		require.LessOrEqual(t, len(h["Authorization"]), 1)
		return strings.Join(h["Authorization"], "")
	}
	set := func(v session.Session) { require.NoError(t, v.Set("user", "ada")) }
	sent := do(nil, set)
	text, ok := strings.CutPrefix(sent, "Bearer ")
	require.True(t, ok)
	require.Len(t, text, 66)
	for line, found := range map[string]bool{
		sent: true, "bearer " + text: true, "BEARER   " + text: true,
		text: false, "Bearer" + text: false, "Bearer\t" + text: false, "Basic " + text: false, "Bearer": false, "Bearer ": false,
		" " + text: false, "Bearer Bearer " + text: false, "Bearer " + text + " ": false, "Bearer " + text + ",Bearer " + text: false, "": false,
	} {
		require.Empty(t, do([]string{line}, func(v session.Session) { require.Equal(t, found, must(v.Exists()), line) }))
	}
	other := do(nil, set)
	do([]string{sent, other}, func(v session.Session) { require.False(t, must(v.Exists()), "two are none") })
	do([]string{"Basic YTpi", sent}, func(v session.Session) { require.True(t, must(v.Exists())) })

	renewed := do([]string{sent}, func(v session.Session) { require.NoError(t, v.Renew()) })
	require.True(t, strings.HasPrefix(renewed, "Bearer ") && renewed != sent)
	c := s.begin(t, "")
	c.Request().Header.Set("Authorization", renewed)
	require.NoError(t, from(t, c).Destroy())
	require.Equal(t, []string{""}, must(s.end(t, c))["Authorization"], "the client is to forget it")
}

// TestTokenInQueryOrFormIsIgnored sends a valid token in every part of a request except the cookie.
func TestTokenInQueryOrFormIsIgnored(t *testing.T) {
	s := newSite(t, session.Options{})
	_, token, _ := strings.Cut(s.login(t, "ada"), "=")
	form := "session=" + token + "&__Host-session=" + token
	for name, r := range map[string]*http.Request{
		"query":  httptest.NewRequest(http.MethodGet, "/?"+form, nil),
		"path":   httptest.NewRequest(http.MethodGet, "/"+token, nil),
		"form":   httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form)),
		"parsed": httptest.NewRequest(http.MethodPost, "/?"+form, strings.NewReader(form)),
		"header": httptest.NewRequest(http.MethodGet, "/", nil),
	} {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(tokenHeader, token)
		if name == "parsed" {
			require.NoError(t, r.ParseForm())
		}
		before := s.store.calls()
		c := reqctx.New(t.Context(), s.reg)
		c.SetRequest(r)
		require.False(t, must(from(t, c).Exists()), name)
		require.Equal(t, before, s.store.calls())
		must(s.end(t, c))
	}
}
