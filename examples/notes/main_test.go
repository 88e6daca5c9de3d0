package main

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTestServer(t *testing.T) *server.Server {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	srv, err := newServer("")
	require.NoError(t, err)
	return srv
}

// upload returns a request with a form that has a title and a file.
func upload(t *testing.T, content string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	require.NoError(t, form.WriteField("title", "First"))
	file, err := form.CreateFormFile("file", "first.txt")
	require.NoError(t, err)
	_, err = file.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	r := httptest.NewRequest("POST", "/notes", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// TestAddNoteWithAFakeUser presets the user, so that the test needs no login and no session.
func TestAddNoteWithAFakeUser(t *testing.T) {
	srv := newTestServer(t)
	r := servertest.Preset(upload(t, "hello"), User, &user{Name: "fake"})
	res := servertest.Do(t, srv, r)
	require.Equal(t, http.StatusCreated, res.Code, res.Body)
	require.JSONEq(t, `{"owner":"fake","title":"First","file":"first.txt","size":5}`, res.Body.String())
	res.RequireResolved(t, "params.upload", "ratelimit.user.key", "ratelimit.user.take")

	files, err := filepath.Glob(filepath.Join(os.TempDir(), "note-fake-*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	saved, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, "hello", string(saved))
}

func TestWithoutALogin(t *testing.T) {
	srv := newTestServer(t)
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/sessions", nil),
		httptest.NewRequest("DELETE", "/sessions/1", nil),
		upload(t, "hello"),
	} {
		res := servertest.Do(t, srv, r)
		require.Equal(t, http.StatusUnauthorized, res.Code, r.URL.Path)
		require.Empty(t, res.Result().Cookies())
	}
}

func TestLogin(t *testing.T) {
	srv := newTestServer(t)
	for body, status := range map[string]int{
		"name=ada&password=lovelace": http.StatusOK,
		"name=ada&password=hopper":   http.StatusForbidden,
		"name=eve&password=":         http.StatusForbidden,
		"name=ada":                   http.StatusBadRequest,
	} {
		r := httptest.NewRequest("POST", "/login", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res := servertest.Do(t, srv, r)
		require.Equal(t, status, res.Code, body)
		require.Equal(t, status == http.StatusOK, len(res.Result().Cookies()) == 1, body)
	}
}

func TestLoginsAreLimited(t *testing.T) {
	srv := newTestServer(t)
	for range 10 {
		res := servertest.Do(t, srv, httptest.NewRequest("POST", "/login", nil))
		require.Equal(t, http.StatusBadRequest, res.Code)
	}
	res := servertest.Do(t, srv, httptest.NewRequest("POST", "/login", nil))
	require.Equal(t, http.StatusTooManyRequests, res.Code)
}

func TestDeletedAccount(t *testing.T) {
	srv := newTestServer(t)
	r := httptest.NewRequest("GET", "/sessions", nil)
	sessiontest.Login(t, srv.Sessions(), r, "eve")
	res := servertest.Do(t, srv, r)
	require.Equal(t, http.StatusUnauthorized, res.Code)
}

// loggedIn returns a request of the user ada, who has logged in on a new device for it.
func loggedIn(t *testing.T, srv *server.Server, method, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	sessiontest.Login(t, srv.Sessions(), r, "ada")
	return r
}

func sessions(t *testing.T, srv *server.Server, r *http.Request) []session.Info {
	t.Helper()
	res := servertest.Do(t, srv, r)
	require.Equal(t, http.StatusOK, res.Code, res.Body)
	var list []session.Info
	require.NoError(t, json.Unmarshal(res.Body.Bytes(), &list))
	return list
}

func TestRevokedSessionIsLoggedOut(t *testing.T) {
	srv := newTestServer(t)
	phone, laptop := loggedIn(t, srv, "GET", "/sessions"), loggedIn(t, srv, "GET", "/sessions")
	list := sessions(t, srv, laptop)
	require.Len(t, list, 2)
	for _, s := range list {
		if !s.Current {
			r := httptest.NewRequest("DELETE", "/sessions/"+s.ID, nil)
			r.Header = laptop.Header
			require.Equal(t, http.StatusOK, servertest.Do(t, srv, r).Code)
		}
	}
	require.Equal(t, http.StatusUnauthorized, servertest.Do(t, srv, phone).Code)
	require.Len(t, sessions(t, srv, laptop), 1)
}

func TestLogout(t *testing.T) {
	srv := newTestServer(t)
	r := loggedIn(t, srv, "POST", "/logout")
	require.Equal(t, http.StatusOK, servertest.Do(t, srv, r).Code)
	list := httptest.NewRequest("GET", "/sessions", nil)
	list.Header = r.Header
	require.Equal(t, http.StatusUnauthorized, servertest.Do(t, srv, list).Code)
}

// TestFourthRequestInASecondIsDenied checks that all devices of a user share a quota, and that another user has
// another quota.
func TestFourthRequestInASecondIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t)
		for range 3 {
			sessions(t, srv, loggedIn(t, srv, "GET", "/sessions"))
		}
		res := servertest.Do(t, srv, loggedIn(t, srv, "GET", "/sessions"))
		require.Equal(t, http.StatusTooManyRequests, res.Code)
		require.Equal(t, "2", res.Header().Get("Retry-After"), "1.05 s, rounded up")

		grace := httptest.NewRequest("GET", "/sessions", nil)
		sessiontest.Login(t, srv.Sessions(), grace, "grace")
		sessions(t, srv, grace)
	})
}

func TestTwoServersOnOneRedisShareLoginsAndLimits(t *testing.T) {
	url := "redis://" + testhost.StartRedis(t).Addr
	a, err := newServer(url)
	require.NoError(t, err)
	b, err := newServer(url)
	require.NoError(t, err)
	r := loggedIn(t, a, "GET", "/sessions")
	require.Len(t, sessions(t, b, r), 1)
	require.Eventually(t, func() bool {
		_ = servertest.Do(t, a, r)
		return servertest.Do(t, b, r).Code == http.StatusTooManyRequests
	}, 10*time.Second, time.Millisecond)
}

func TestOtherOriginsAreRefused(t *testing.T) {
	srv := newTestServer(t)
	r := loggedIn(t, srv, "POST", "/logout")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, servertest.Do(t, srv, r).Code)
	require.Equal(t, http.StatusOK, servertest.Do(t, srv, loggedIn(t, srv, "GET", "/sessions")).Code)
}
