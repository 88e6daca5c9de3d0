package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// newAccounts returns a server with a login and a page that shows the user.
func newAccounts(t *testing.T, o server.Options) *server.Server {
	srv, _ := newServer(t, o)
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	srv.HandleFunc("POST /logout", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Destroy() })
	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
		user, err := session.RequireUser(req)
		if err != nil {
			return err
		}
		return writeText(w, user)
	})
	return srv
}

func TestPartitionedCookieOverTLS(t *testing.T) {
	url, c := h2Server(t, newAccounts(t, server.Options{Session: session.Options{Cookie: session.Cookie{
		Name: "__Host-Http-id", SameSite: http.SameSiteNoneMode, Partitioned: true,
	}}}))
	const attributes = "; HttpOnly; Secure; SameSite=None; Partitioned"
	res, err := request(t, c, "POST", url+"/login")
	require.NoError(t, err)
	pair, rest, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	require.Equal(t, " Path=/"+attributes, rest)
	for _, step := range []struct {
		method, path string
		status       int
		cookie       string
	}{
		{"GET", "/me", http.StatusOK, ""},
		{"POST", "/logout", http.StatusOK, "__Host-Http-id=; Path=/; Max-Age=0" + attributes},
		{"GET", "/me", http.StatusUnauthorized, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), step.method, url+step.path, nil)
		require.NoError(t, err)
		r.Header.Set("Cookie", pair)
		res, err := do(c, r)
		require.NoError(t, err)
		require.Equal(t, step.status, res.StatusCode)
		require.Equal(t, step.cookie, res.Header.Get("Set-Cookie"))
	}
}

func TestBearerTokenOverHTTP(t *testing.T) {
	url, c := listen(t, newAccounts(t, server.Options{Session: session.Options{Header: "Authorization", HeaderScheme: "Bearer"}}))
	res, err := request(t, c, "POST", url+"/login")
	require.NoError(t, err)
	sent := res.Header.Get("Authorization")
	require.Regexp(t, `^Bearer [\w.-]{66}$`, sent)
	require.Empty(t, res.Cookies())
	for line, status := range map[string]int{
		sent: http.StatusOK, strings.Replace(sent, "Bearer", "bearer", 1): http.StatusOK,
		strings.TrimPrefix(sent, "Bearer "):         http.StatusUnauthorized,
		strings.Replace(sent, "Bearer", "Basic", 1): http.StatusUnauthorized,
		"Bearer " + strings.Repeat("x", 1<<16):      http.StatusUnauthorized,
		strings.Repeat("Bearer ", 1000) + sent:      http.StatusUnauthorized,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/me", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", line)
		res, err := do(c, r)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode, line[:40])
	}
}
