package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

// serveLogins runs a server whose sessions are in the Redis at redisAddr, with at most two for each user. The server trusts
// proxies on this machine. It prints the server's address, and ends when in ends.
func serveLogins(redisAddr string, in io.Reader, out io.Writer) {
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	defer client.Close()
	store, err := sessionstore.New(client, sessionstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	addr, err := ratelimit.IPOptions{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Header: "X-Forwarded-For",
	}.Client()
	if err != nil {
		panic(err)
	}
	srv, err := server.New(server.Options{
		SessionStore: store,
		Session:      session.Options{MaxPerUser: 2, Devices: true, ClientAddr: addr, Cookie: session.Cookie{Insecure: true}},
	})
	if err != nil {
		panic(err)
	}
	srv.HandleFunc("POST /login/{user}", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Session().Bind(req.PathValue("user"))
	})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		devices, err := req.Session().List()
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(devices)
	}, server.Require(session.LoggedIn))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	go func() { _ = srv.Serve(l) }()
	_, _ = io.Copy(io.Discard, in)
}

// startTwo starts two processes that run serveLogins on a new Redis. It returns their addresses and a client.
func startTwo(t *testing.T) (urls []string, c *http.Client) {
	redisAddr := testhost.StartRedis(t).Addr
	for range 2 {
		p := testhost.StartProcess(t, redisAddr)
		line, err := bufio.NewReader(p.Out).ReadString('\n')
		require.NoError(t, err)
		urls = append(urls, strings.TrimSpace(line))
	}
	c = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}
	t.Cleanup(c.CloseIdleConnections)
	return urls, c
}

// Two processes share a Redis. A user logs in many times at once. Of the logins that have succeeded, at most two work at
// any moment, and two in the end.
func TestMaxPerUserOfTwoProcesses(t *testing.T) {
	testhost.ServeProcess(t, serveLogins)
	urls, c := startTwo(t)
	var mu sync.Mutex
	var cookies []*http.Cookie  // of the logins that have succeeded
	working := func() (n int) { // of the cookies that it begins with
		mu.Lock()
		seen := slices.Clone(cookies)
		mu.Unlock()
		for i, cookie := range seen {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", urls[i%2], nil)
			r.AddCookie(cookie)
			res, err := do(c, r)
			switch {
			case err != nil:
				t.Error(err)
			case res.StatusCode == http.StatusOK:
				n++
			case res.StatusCode != http.StatusUnauthorized:
				t.Errorf("a request has the status %d", res.StatusCode)
			}
		}
		return n
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			res, err := request(t, c, "POST", urls[i%2]+"/login/ada")
			switch {
			case err != nil:
				t.Error(err)
			case res.StatusCode == http.StatusOK:
				mu.Lock()
				cookies = append(cookies, res.Cookies()...)
				mu.Unlock()
				if n := working(); n > 2 {
					t.Errorf("%d sessions worked at the same time", n)
				}
			case res.StatusCode != http.StatusConflict:
				t.Errorf("a login has the status %d", res.StatusCode)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, working())
	res, err := request(t, c, "POST", urls[0]+"/login/ada")
	require.NoError(t, err)
	cookies = append(cookies, res.Cookies()...)
	require.Equal(t, 2, working())
}

// A user logs in through one process with two devices and sees both through the other process. The addresses are those
// that the trusted proxy, which is the test, has seen.
func TestDevicesOfTwoProcesses(t *testing.T) {
	testhost.ServeProcess(t, serveLogins)
	urls, c := startTwo(t)
	login := func(agent, forwarded string) *http.Cookie {
		r, err := http.NewRequestWithContext(t.Context(), "POST", urls[0]+"/login/ada", nil)
		require.NoError(t, err)
		r.Header = http.Header{"User-Agent": {agent}, "X-Forwarded-For": {forwarded}}
		res, err := do(c, r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		return res.Cookies()[0]
	}
	login("Phone/1 <b>", "198.51.100.66, 203.0.113.7") // the client has written the first address
	cookie := login("Laptop/2", "2001:db8::1")

	r, err := http.NewRequestWithContext(t.Context(), "GET", urls[1], nil)
	require.NoError(t, err)
	r.AddCookie(cookie)
	res, err := do(c, r)
	require.NoError(t, err)
	var devices []struct {
		Addr, UserAgent string
		Current         bool
	}
	require.NoError(t, json.Unmarshal([]byte(res.body), &devices))
	require.Len(t, devices, 2)
	require.Equal(t, "2001:db8::1", devices[0].Addr)
	require.Equal(t, "Laptop/2", devices[0].UserAgent)
	require.True(t, devices[0].Current)
	require.Equal(t, "203.0.113.7", devices[1].Addr)
	require.Equal(t, "Phone/1 <b>", devices[1].UserAgent)
}
