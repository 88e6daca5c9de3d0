package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

// newAccounts returns a server with a login and a page that shows the user.
func newAccounts(t *testing.T, o server.Options) *server.Server {
	srv, _ := newServer(t, o)
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	srv.HandleFunc("POST /login/remember", func(_ http.ResponseWriter, req *server.Request) error {
		return errors.Join(req.Session().Bind("ada"), req.Session().Remember())
	})
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
		res := requestWith(t, c, step.method, url+step.path, "Cookie", pair)
		require.Equal(t, step.status, res.StatusCode)
		require.Equal(t, step.cookie, res.Header.Get("Set-Cookie"))
	}
}

// requestWith sends a request with a header field.
func requestWith(t *testing.T, c *http.Client, method, url, field, value string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	r.Header.Set(field, value)
	res, err := do(c, r)
	require.NoError(t, err)
	return res
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
		require.Equal(t, status, requestWith(t, c, "GET", url+"/me", "Authorization", line).StatusCode, line[:40])
	}
}

// TestRememberedLoginOnTwoServers logs in at one process, and uses and ends the session at another one. Both have the
// same Redis. After the ordinary session has ended, the remembered one still exists, even without the first process.
func TestRememberedLoginOnTwoServers(t *testing.T) {
	testhost.ServeProcess(t, func(addr string, in io.Reader, out io.Writer) { serveAccounts(t, addr, in, out) })
	addr := testhost.StartRedis(t).Addr
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var processes [2]*testhost.Process
	var urls [2]string
	for i := range processes {
		processes[i] = testhost.StartProcess(t, addr)
		line, err := bufio.NewReader(processes[i].Out).ReadString('\n')
		require.NoError(t, err)
		urls[i] = strings.TrimSpace(line)
	}
	login := func(path string) *http.Cookie {
		res, err := request(t, c, "POST", urls[0]+path)
		require.NoError(t, err)
		require.Len(t, res.Cookies(), 1)
		return res.Cookies()[0]
	}
	status := func(url, path, method string, own *http.Cookie) int {
		return requestWith(t, c, method, url+path, "Cookie", own.Name+"="+own.Value).StatusCode
	}
	remembered, plain := login("/login/remember"), login("/login")
	require.Equal(t, 3600, remembered.MaxAge)
	require.Zero(t, plain.MaxAge)
	require.Eventually(t, func() bool { return status(urls[1], "/me", "GET", plain) == http.StatusUnauthorized }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, http.StatusOK, status(urls[0], "/me", "GET", remembered))
	processes[0].Kill()
	require.Equal(t, http.StatusOK, status(urls[1], "/me", "GET", remembered))
	require.Equal(t, http.StatusOK, status(urls[1], "/logout", "POST", remembered))
	require.Equal(t, http.StatusUnauthorized, status(urls[1], "/me", "GET", remembered))
	processes[1].End(t)
}

// serveAccounts runs a server in a process until in ends. It prints its URL.
func serveAccounts(t *testing.T, addr string, in io.Reader, out io.Writer) {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	store, err := sessionstore.New(client, sessionstore.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	url, _ := listenItself(t, newAccounts(t, server.Options{
		SessionStore: store, Session: session.Options{AbsoluteTimeout: time.Second, RememberFor: time.Hour},
	}))
	fmt.Fprintln(out, url)
	_, err = io.Copy(io.Discard, in)
	require.NoError(t, err)
}
