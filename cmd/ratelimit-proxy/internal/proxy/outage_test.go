package proxy

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// line is one line of a log, by the names of its fields.
type line map[string]any

// above returns the lines of the log whose level is above debug.
func (l *logs) above(tb testing.TB) (out []line) {
	tb.Helper()
	for _, text := range l.lines("") {
		var one line
		require.NoError(tb, json.Unmarshal([]byte(text), &one), text)
		if one["level"] != "DEBUG" {
			out = append(out, one)
		}
	}
	return out
}

// TestRedisDownIsLoggedOnce checks that an outage of Redis is logged twice: at its beginning, with the cause, and at
// its end.
func TestRedisDownIsLoggedOnce(t *testing.T) {
	t.Parallel()
	up, redis := behind(t, nil), testhost.StartRedis(t)
	p := run(t, parse(t, "redis: redis://%s\nredis_timeout: 10s\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1000/60s}]\n", redis.Addr, up.URL))
	redis.Kill()
	require.Equal(t, 503, p.get(t, "/").StatusCode)
	require.Contains(t, p.metrics(t, "ratelimit_proxy_store_down"), " 1\n", "already")
	for range 99 {
		require.Equal(t, 503, p.get(t, "/").StatusCode)
	}
	require.Equal(t, 503, p.get(t, "/", "X-RateLimit-Status", "true").StatusCode)
	require.Equal(t, 503, p.get(t, "/status/x").StatusCode)
	require.Len(t, p.log.lines("request failed"), 102, "for debugging")
	logged := p.log.above(t)
	require.Len(t, logged, 1)
	require.Equal(t, "ERROR", logged[0]["level"])
	require.Equal(t, "Redis fails: the rules' on_error applies", logged[0]["msg"])
	require.Contains(t, logged[0]["error"], redis.Addr+": not sent: connect: connection refused", "the cause")

	redis.Restart()
	require.Eventually(t, func() bool {
		require.Contains(t, []int{200, 503}, p.get(t, "/").StatusCode)
		return len(p.log.lines("Redis works again")) > 0
	}, 60*time.Second, 20*time.Millisecond)
	require.Contains(t, p.metrics(t, "ratelimit_proxy_store_down"), " 0\n")
}

// TestPingRedis checks that a ping waits for Redis only as long as a request does, and that it needs no other commands.
func TestPingRedis(t *testing.T) {
	t.Parallel()
	redis := testhost.StartRedis(t)
	rules := testhost.ParseUser(t, "../../../../docs/redis.md", "limits")
	redis.SetUser("limits", slices.DeleteFunc(rules, func(rule string) bool { return rule == "+ping" }))
	p := run(t, parse(t, "redis: redis://limits:secret@%s\nredis_timeout: 2s\nupstreams: {main: {url: 'http://a'}}\nrules: [{name: limit, limit: 9/60s}]\n", redis.Addr))
	p.PingRedis(t.Context())
	require.Empty(t, p.log.above(t))
	require.Empty(t, redis.Client(nil).Keys(t.Context(), "*").Val())

	resume := redis.Pause()
	p.PingRedis(t.Context())
	resume()
	logged := p.log.above(t)
	require.Len(t, logged, 1)
	require.Contains(t, logged[0]["error"], ": no reply")
}

// TestUpstreamDownIsLoggedOnce checks that an outage of an upstream is logged twice: at its beginning, with the
// cause, and at its end.
func TestUpstreamDownIsLoggedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	p := run(t, parse(t, "upstreams: {main: {url: 'http://%s'}}\n", addr))
	for range 50 {
		a := p.get(t, "/")
		require.Equal(t, 502, a.StatusCode)
		require.JSONEq(t, `{"status":502,"title":"Bad Gateway","detail":"The server behind this proxy could not be reached."}`, a.body)
	}
	logged := p.log.above(t)
	require.Equal(t, "the upstream doesn't answer", logged[0]["msg"])
	require.Equal(t, "main", logged[0]["upstream"])
	require.Contains(t, logged[0]["error"], "connection refused")
	require.Len(t, logged, 1)

	l, err = net.Listen("tcp", addr)
	require.NoError(t, err)
	up := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go func() { _ = up.Serve(l) }()
	defer up.Close()
	require.Equal(t, 200, p.get(t, "/").StatusCode)
	require.Len(t, p.log.lines("the upstream answers again"), 1)
}

// TestUnsupportedRequestsAreNotErrors checks that the log has no error for each CONNECT request or loop.
func TestUnsupportedRequestsAreNotErrors(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "10/60s"))
	require.Contains(t, p.send(t, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n"), " 501 ")
	for range 9 {
		require.Equal(t, 508, p.get(t, "/", "Via", "1.1 "+p.pseudonym).StatusCode)
	}
	logged := p.log.above(t)
	require.NotEmpty(t, logged)
	for _, l := range logged {
		require.Contains(t, l["msg"], "loop")
	}
	require.Less(t, len(logged), 9)
}

// newOutage returns an outage and the log that it writes to.
func newOutage() (*outage, *logs) {
	var l logs
	return &outage{log: slog.New(slog.NewJSONHandler(&l, nil)), lost: "lost", back: "back"}, &l
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := newOutage()
		o.callSucceeded()
		for range 3000 { // the failures take 30 s in all
			o.callFailed(errors.New("refused"))
			<-time.After(10 * time.Millisecond)
		}
		o.callSucceeded()
		o.callSucceeded()
		logged := l.above(t)
		require.Len(t, logged, 2)
		require.Equal(t, "lost", logged[0]["msg"])
		require.Equal(t, "refused", logged[0]["error"])
		require.Equal(t, "back", logged[1]["msg"])
		require.Equal(t, "30s", logged[1]["after"])

		for range 3000 { // the outage begins and ends many times
			o.callFailed(errors.New("refused"))
			o.callSucceeded()
			<-time.After(10 * time.Millisecond)
		}
		require.Len(t, l.lines("lost"), 1+3)
		require.Len(t, l.lines("back"), 1+3)
	})
}

func TestThrottledLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logs
		log, s := slog.New(slog.NewJSONHandler(&l, nil)), throttledLog{}
		for range 100 {
			s.write(log, slog.LevelError, "text")
			<-time.After(time.Second)
		}
		require.Len(t, l.lines("text"), 10)
		require.Len(t, l.lines(`"skipped":9`), 9)
	})
}

// TestNoQuotaHeadersWithoutRedis checks that an open rule sends no quota headers while Redis is down.
func TestNoQuotaHeadersWithoutRedis(t *testing.T) {
	up, redis := behind(t, nil), testhost.StartRedis(t)
	p := run(t, parse(t, `
redis: redis://%s
redis_timeout: 10s
replicas: 2
upstreams: {main: {url: %q}}
rules:
  - {name: open, match: {paths: [/open, /both]}, limit: 4/60s, on_error: open}
  - {name: many, match: {paths: [/many]}, limits: [{name: a, rate: 4/60s}, {name: b, rate: 8/1h}], on_error: open}
  - {name: tried, match: {paths: [/tried]}, limit: 4/60s, on_error: open, shadow: true}
  - {name: local, match: {paths: [/local, /both]}, limit: 6/60s, on_error: local}
`, redis.Addr, up.URL))
	fields := []string{"RateLimit", "X-RateLimit-Remaining", "X-RateLimit-MaxRequests"}
	for _, name := range fields {
		require.NotEmpty(t, p.get(t, "/open").Header.Get(name))
	}
	redis.Kill()
	for range 12 { // after about ten failures, the proxy no longer calls Redis
		for _, path := range []string{"/open", "/many", "/tried"} {
			a := p.get(t, path)
			require.Equal(t, 200, a.StatusCode)
			for _, name := range fields {
				require.Empty(t, a.Header.Get(name), "%s: %s", path, name)
			}
		}
	}
	require.Equal(t, 503, p.get(t, "/open", "X-RateLimit-Status", "true").StatusCode)
	require.Equal(t, 503, p.get(t, "/status/x?rule=open").StatusCode)
	require.Equal(t, 404, p.get(t, "/tried", "X-RateLimit-Status", "true").StatusCode, "it limits nothing, with Redis or without")

	// The headers of a local rule describe the limit of this proxy, which is half of the rule's limit.
	a := p.get(t, "/both")
	require.Equal(t, `"local";r=2;t=60`, a.Header.Get("RateLimit"))
	require.Contains(t, p.get(t, "/both", "X-RateLimit-Status", "true").body, `"remaining":2`)
	require.Contains(t, p.metrics(t, "ratelimit_proxy_decisions_total"), `{rule="open",decision="allowed"} 16`)
}

// TestWrongKeyTypeIsNoOutage checks that a key of another type in Redis does not count as an outage, and that other
// keys are still limited.
func TestWrongKeyTypeIsNoOutage(t *testing.T) {
	up, redis := behind(t, nil), testhost.StartRedis(t)
	p := run(t, parse(t, "redis: redis://%s\nredis_timeout: 10s\nupstreams: {main: {url: %q}}\nrules: [{name: r, key: '{header.K}', limit: 1000/60s}]\n",
		redis.Addr, up.URL))
	require.Equal(t, 200, p.get(t, "/", "K", "bad").StatusCode)
	c := redis.Client(nil)
	keys := c.Keys(t.Context(), "*").Val()
	require.Len(t, keys, 1)
	require.NoError(t, c.Del(t.Context(), keys[0]).Err())
	require.NoError(t, c.SAdd(t.Context(), keys[0], "x").Err())
	for range 40 {
		require.Equal(t, 503, p.get(t, "/", "K", "bad").StatusCode)
	}
	require.Equal(t, 200, p.get(t, "/", "K", "good").StatusCode)
	require.Len(t, p.log.lines("a key in Redis has an unexpected type"), 1)
	require.Empty(t, p.log.lines("doesn't answer"))
}
