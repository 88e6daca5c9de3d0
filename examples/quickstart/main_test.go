package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// programVariable is the environment variable that makes the test binary run the program instead of the tests.
const programVariable = "QUICKSTART_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	_ = os.Unsetenv("REDIS_URL") // tests that need Redis set it themselves
	goleak.VerifyTestMain(m)
}

// client is a browser that uses a running program.
type client struct {
	t   *testing.T
	url string
	http.Client
}

// start runs the program on a free port until the test ends.
func start(t *testing.T) *client {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0"}, printed) }()
	help, n := make([]byte, 4096), 0
	for !bytes.Contains(help[:n], []byte("Listening")) {
		more, err := out.Read(help[n:])
		require.NoError(t, err)
		n += more
	}
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).Find(help[:n])
	require.NotEmpty(t, found)
	require.Equal(t, 3, bytes.Count(help[:n], []byte("curl -i ")), "three lines to try")

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
	})
	return &client{t, string(found), http.Client{
		Transport: transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// do sends a request with header fields given as "Name: value", and returns the
// response and its body.
func (c *client) do(method, path, body string, header ...string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := c.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return res, string(text)
}

// loginForm logs in with a form, as a browser does.
func (c *client) loginForm(user string) (*http.Response, string) {
	return c.do("POST", "/login", url.Values{"user": {user}}.Encode(), "Content-Type: application/x-www-form-urlencoded")
}

// problem checks that a response is a problem with this status, and returns its members.
func problem(t *testing.T, status int, res *http.Response, body string) map[string]any {
	t.Helper()
	require.Equal(t, status, res.StatusCode, body)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &members))
	require.EqualValues(t, status, members["status"])
	return members
}

func TestIndexSaysWhatToTry(t *testing.T) {
	c := start(t)
	res, body := c.do("GET", "/", "")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	for _, path := range []string{"/fast", "/search", "/count", "/login", "/me", "/logout"} {
		require.Contains(t, body, path)
	}
	untouched(t, res)
	res, body = c.do("GET", "/elsewhere", "")
	problem(t, 404, res, body)
}

// untouched checks that a response shows no trace of a property, such as a cookie.
func untouched(t *testing.T, res *http.Response) {
	t.Helper()
	for _, field := range []string{"Set-Cookie", "Vary", "Server-Timing", "RateLimit", "RateLimit-Policy"} {
		require.Empty(t, res.Header.Values(field), field)
	}
}

func TestInspectPrintsThePage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-inspect", "127.0.0.1:0"}, printed) }()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^What requests do: http://127\.0\.0\.1:\d+/#token=\w+\n$`, line)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, printed.Close())
	require.Error(t, run(t.Context(), []string{"-addr", "127.0.0.1:0", "-inspect", "0.0.0.0:0"}, io.Discard))
}

func TestFastTouchesNothing(t *testing.T) {
	c := start(t)
	_, _ = c.loginForm("ada") // from here on, the client sends a session's cookie
	res, body := c.do("GET", "/fast", "")
	require.Equal(t, 204, res.StatusCode)
	require.Empty(t, body)
	untouched(t, res)
}

func TestSearchAllowsFiveAMinute(t *testing.T) {
	c := start(t)
	for i := range 5 {
		res, body := c.do("GET", "/search?q=gO", "")
		require.Equal(t, 200, res.StatusCode, body)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		require.Equal(t, `"search";q=5;w=60`, res.Header.Get("RateLimit-Policy"))
		require.Contains(t, res.Header.Get("RateLimit"), `"search";r=`+strconv.Itoa(4-i)+";t=")
		require.Contains(t, res.Header.Get("Server-Timing"), "ratelimit.search.take;dur=")
		require.Empty(t, res.Cookies())
		var got struct {
			Q       string
			Results []string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, "gO", got.Q)
		require.Contains(t, got.Results, "Effective Go")
		require.NotContains(t, got.Results, "Redis in Action")
	}

	res, body := c.do("GET", "/search?q=go", "", "Accept: application/json")
	members := problem(t, 429, res, body)
	require.Equal(t, []any{"search"}, members["violated-policies"])
	require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", members["type"])
	wait, err := strconv.Atoi(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.True(t, wait >= 1 && wait <= 65, wait)
	require.Contains(t, res.Header.Get("RateLimit"), `"search";r=0;t=`)
	require.Equal(t, `"search";q=5;w=60`, res.Header.Get("RateLimit-Policy"))

	res, _ = c.do("GET", "/search?q=go", "", "Accept: text/html,*/*;q=0.8")
	require.Equal(t, 303, res.StatusCode)
	require.Equal(t, "/slow-down", res.Header.Get("Location"))
	require.NotEmpty(t, res.Header.Get("Retry-After"))

	res, body = c.do("GET", "/slow-down", "")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	require.Regexp(t, `next search passes in\s+<strong>\d+ seconds?</strong>`, body)

	// The requests to /slow-down and the denied searches were not counted.
	require.Equal(t, `{"count":5}`, counted(c))
}

// counted returns the response about the searches of the last 20 seconds.
func counted(c *client) string {
	res, body := c.do("GET", "/count", "")
	require.Equal(c.t, 200, res.StatusCode)
	return strings.TrimSpace(body)
}

func TestSlowDownWhenThereIsNoNeed(t *testing.T) {
	c := start(t)
	_, body := c.do("GET", "/slow-down", "")
	require.Contains(t, body, "You can search again now.")
	require.Equal(t, `{"count":0}`, counted(c), "looking does not count")
}

// TestWhatTimeDoes checks that the count covers 20 seconds and the limit a minute. Both may be up to 5 seconds, the
// length of a bucket, longer.
func TestWhatTimeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := newServer(stores{})
		require.NoError(t, err)
		get := func(path string) (int, string) {
			rec := httptest.NewRecorder()
			srv.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
			return rec.Code, strings.TrimSpace(rec.Body.String())
		}
		began := time.Now()
		at := func(d time.Duration) { <-time.After(time.Until(began.Add(d))) }
		for range 5 {
			get("/search?q=go")
		}
		at(19900 * time.Millisecond)
		_, body := get("/count")
		require.Equal(t, `{"count":5}`, body)
		at(25 * time.Second)
		_, body = get("/count")
		require.Equal(t, `{"count":0}`, body)
		status, _ := get("/search?q=go")
		require.Equal(t, 429, status)
		at(65 * time.Second)
		status, _ = get("/search?q=go")
		require.Equal(t, 200, status)
	})
}

func TestCountDoesNotCountItself(t *testing.T) {
	c := start(t)
	require.Equal(t, `{"count":0}`, counted(c))
	require.Equal(t, `{"count":0}`, counted(c))
	for range 2 {
		c.do("GET", "/search?q=x", "")
	}
	require.Equal(t, `{"count":2}`, counted(c))
	res, body := c.do("GET", "/search", "") // without the parameter q, the request is refused before it is charged
	problem(t, 400, res, body)
	require.Contains(t, body, `"q"`)
	require.Equal(t, `{"count":2}`, counted(c))
}

func TestLoginMeLogout(t *testing.T) {
	for name, login := range map[string]func(c *client, user string) (*http.Response, string){
		"form": (*client).loginForm,
		"JSON": func(c *client, user string) (*http.Response, string) {
			body, err := json.Marshal(map[string]string{"user": user})
			require.NoError(c.t, err)
			return c.do("POST", "/login", string(body), "Content-Type: application/json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			res, body := c.do("GET", "/me", "")
			problem(t, 401, res, body)
			require.Empty(t, res.Cookies(), "no session by asking")

			res, body = login(c, " ")
			problem(t, 400, res, body)
			require.Empty(t, res.Cookies())

			res, _ = login(c, "ada")
			require.Equal(t, 303, res.StatusCode)
			require.Equal(t, "/me", res.Header.Get("Location"))
			first := cookie(t, res)
			require.Equal(t, "session", first.Name)
			require.True(t, first.HttpOnly)
			require.False(t, first.Secure, "this is plain HTTP")
			require.Equal(t, http.SameSiteLaxMode, first.SameSite)
			require.Equal(t, "/", first.Path)
			require.Zero(t, first.MaxAge)

			for _, want := range []string{`{"user":"ada","visits":1}`, `{"user":"ada","visits":2}`} {
				res, body = c.do("GET", "/me", "")
				require.Equal(t, 200, res.StatusCode)
				require.JSONEq(t, want, body)
				require.Empty(t, res.Cookies(), "the cookie stays")
				require.Equal(t, "Cookie", res.Header.Get("Vary"))
			}

			// A login gives the session a new id. The old id has no session then.
			res, _ = login(c, "bob")
			second := cookie(t, res)
			require.NotEqual(t, first.Value, second.Value)
			_, body = c.do("GET", "/me", "")
			require.Contains(t, body, `"user":"bob"`)
			requireNobody(t, c, first)

			res, _ = c.do("POST", "/logout", "")
			require.Equal(t, 303, res.StatusCode)
			require.Negative(t, cookie(t, res).MaxAge)
			res, body = c.do("GET", "/me", "")
			problem(t, 401, res, body)
			requireNobody(t, c, second)
		})
	}
}

// TestTabsLoseNoVisit sends requests of one browser at the same time. Each visit must count.
func TestTabsLoseNoVisit(t *testing.T) {
	c := start(t)
	_, _ = c.loginForm("ada")
	var tabs sync.WaitGroup
	for range 50 {
		tabs.Go(func() { c.do("GET", "/me", "") })
	}
	tabs.Wait()
	_, body := c.do("GET", "/me", "")
	require.JSONEq(t, `{"user":"ada","visits":51}`, body)
}

func cookie(t *testing.T, res *http.Response) *http.Cookie {
	t.Helper()
	require.Len(t, res.Cookies(), 1)
	return res.Cookies()[0]
}

// requireNobody checks that an old cookie no longer belongs to a session.
func requireNobody(t *testing.T, c *client, old *http.Cookie) {
	t.Helper()
	other := &client{t, c.url, http.Client{Transport: c.Transport}}
	res, body := other.do("GET", "/me", "", "Cookie: "+old.Name+"="+old.Value)
	problem(t, 401, res, body)
}

func TestLoginRefusesWhatItCannotRead(t *testing.T) {
	c := start(t)
	for name, tt := range map[string]struct {
		typ, body string
		status    int
	}{
		"no body":         {"application/json", "", 400},
		"no user":         {"application/x-www-form-urlencoded", "name=ada", 400},
		"user is no text": {"application/json", `{"user":{}}`, 400},
		"trailing bytes":  {"application/json", `{"user":"ada"} {}`, 400},
		"cut off":         {"application/json", `{"user":"ad`, 400},
		"another type":    {"text/plain", "user=ada", 415},
		"long user":       {"application/json", `{"user":"` + strings.Repeat("a", 65<<10) + `"}`, 400},
		"too large":       {"application/json", `{"user":"` + strings.Repeat("a", 1<<20) + `"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := c.do("POST", "/login", tt.body, "Content-Type: "+tt.typ)
			problem(t, tt.status, res, body)
			require.Empty(t, res.Cookies())
		})
	}
	res, body := c.do("GET", "/login", "")
	problem(t, 405, res, body)
	require.Equal(t, "POST", res.Header.Get("Allow"))
	res, _ = c.do("GET", "/me", "", "Cookie: session=%00garbage")
	require.Equal(t, 401, res.StatusCode)
}

func TestPortInUseIsAClearError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var out bytes.Buffer
	err = run(t.Context(), []string{"-addr", l.Addr().String()}, &out)
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "-addr picks another address")
	require.Empty(t, out.String())
}

func TestFlags(t *testing.T) {
	require.NoError(t, run(t.Context(), []string{"-h"}, io.Discard))
	require.Error(t, run(t.Context(), []string{"-nonsense"}, io.Discard))
	require.Error(t, run(t.Context(), []string{"-addr", "nonsense"}, io.Discard))
}

func TestEndOfTheContextShutsDown(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	require.NoError(t, run(ctx, []string{"-addr", "127.0.0.1:0"}, &out))
	require.Contains(t, out.String(), "Listening on http://127.0.0.1:")
}
