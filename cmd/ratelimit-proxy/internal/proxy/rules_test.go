package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		match string
		yes   []string // method, host, path, and then names and values of headers
		no    []string
	}{
		{"{}", []string{"GET a /", "PUT b:80 /x/y"}, nil},
		{"{methods: [GET, HEAD]}", []string{"GET a /", "HEAD a /"}, []string{"POST a /", "get a /"}},
		{
			"{hosts: [example.com, '*.example.org']}",
			[]string{"GET example.com /", "GET EXAMPLE.com:8080 /", "GET example.com. /", "GET a.example.org /", "GET a.b.example.org /"},
			[]string{"GET example.org /", "GET xexample.org /", "GET www.example.com /", "GET evil.com /"},
		},
		{"{paths: [/]}", []string{"GET a /", "GET a //"}, []string{"GET a /x"}},
		{
			"{paths: [/users/*/orders]}",
			[]string{"GET a /users/7/orders", "GET a /users/7/orders/", "GET a //users/7//orders", "GET a /%75sers/7/orders"},
			[]string{"GET a /users/orders", "GET a /users/7/orders/1", "GET a /users/7/8/orders", "GET a /Users/7/orders"},
		},
		{
			"{paths: ['/api/**']}",
			[]string{"GET a /api", "GET a /api/", "GET a /api/x/y"},
			[]string{"GET a /apis", "GET a /"},
		},
		{"{paths: ['/**']}", []string{"GET a /", "GET a /x/y"}, nil},
		{"{headers: {x-plan: gold}}", []string{"GET a / X-Plan gold"}, []string{"GET a /", "GET a / X-Plan Gold", "GET a / X-Plan goldish"}},
		{"{headers: {X-Plan: '*'}}", []string{"GET a / X-Plan gold", "GET a / X-Plan -"}, []string{"GET a / Y gold"}},
		{"{methods: [GET], paths: [/x]}", []string{"GET a /x"}, []string{"POST a /x", "GET a /y"}},
	} {
		conf := parse(t, "upstreams: {main: {url: http://a}}\nroutes: [{upstream: main, match: %s}]\n", c.match)
		conf, err := conf.Resolve()
		require.NoError(t, err)
		m := &conf.Routes[0].Match
		check := func(want bool, requests []string) {
			for _, text := range requests {
				w := strings.Fields(text)
				r := httptest.NewRequest(w[0], w[2], nil)
				r.Host = w[1]
				for i := 3; i < len(w); i += 2 {
					r.Header.Add(w[i], w[i+1])
				}
				require.Equal(t, want, matches(m, r, cleanPath(r)), "%s: %s", c.match, text)
			}
		}
		check(true, c.yes)
		check(false, c.no)
	}
}

func TestRulesUpToLast(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: login, match: {paths: [/login]}, limit: 2/60s}
  - {name: static, match: {paths: ['/static/**']}, limit: 3/60s, last: true}
  - {name: all, limit: 4/60s}
`, up.URL))
	for range 3 {
		require.True(t, p.passes(t, "/static/x"))
	}
	require.False(t, p.passes(t, "/static/x"))
	require.EqualValues(t, 4, p.status(t, "/")["remaining"], "the last rule has kept the request from the others")
	require.True(t, p.passes(t, "/login"))
	require.True(t, p.passes(t, "/login"))
	require.False(t, p.passes(t, "/login"))
	require.EqualValues(t, 2, p.status(t, "/")["remaining"], "what was denied by one was charged by none")
	require.EqualValues(t, 0, p.status(t, "/login")["remaining"], "the one with the least left speaks")
	require.EqualValues(t, 2, p.status(t, "/login?rule=all")["remaining"])
	require.True(t, p.passes(t, "/"))
	require.True(t, p.passes(t, "/"))
	require.False(t, p.passes(t, "/"))
}

func TestLimits(t *testing.T) {
	c := newClock()
	p := runAt(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: gcra, match: {paths: [/gcra]}, limits: [{algorithm: gcra, rate: 60/60s, burst: 2}]}
  - {name: log, match: {paths: [/log]}, limits: [{algorithm: log, rate: 2/10s}]}
  - {name: stream, match: {paths: [/stream]}, limits: [{algorithm: stream, rate: 2/10s}]}
  - {name: buckets, match: {paths: [/buckets]}, limits: [{algorithm: buckets, rate: 2/10s, interval: 1s}]}
  - {name: throttle, match: {paths: [/throttle]}, limits: [{algorithm: throttle, rate: 1/s}]}
  - {name: two, match: {paths: [/two]}, limits: [{name: s, rate: 1/s}, {name: m, rate: 2/m}]}
  - {name: block, match: {paths: [/block]}, limits: [{rate: 1/s, block: {after: 2, for: 10m}}]}
`, behind(t, nil).URL), c.Now)
	count := func(path string) (n int) {
		for p.passes(t, path) {
			n++
		}
		return n
	}
	require.Equal(t, 2, count("/gcra"))
	require.Equal(t, map[string]int64{"max_requests": 2, "requests": 2, "remaining": 0, "ttl": 2, "reset": c.Now().Unix() + 2, "denials": 1}, p.status(t, "/gcra"))
	require.Equal(t, 2, count("/log"))
	require.Equal(t, 2, count("/stream"))
	require.Equal(t, 2, count("/buckets"))
	require.Equal(t, 1, count("/throttle"))
	require.Equal(t, 1, count("/two"))
	require.Equal(t, 1, count("/block"))
	require.False(t, p.passes(t, "/block"))
	c.Advance(time.Second)
	require.Equal(t, 1, count("/gcra"))
	require.Equal(t, 0, count("/log"))
	require.Equal(t, 1, count("/throttle"))
	require.Equal(t, 1, count("/two"))
	require.Equal(t, 0, count("/block"), "it is shut out")
	require.EqualValues(t, 2, p.status(t, "/two")["max_requests"], "the limit that one waits for")
	c.Advance(10 * time.Second)
	require.Equal(t, 2, count("/log"))
	require.Equal(t, 2, count("/buckets"))
	require.Equal(t, 0, count("/two"))
}

// TestCalendar has a limit for each day in São Paulo, where the clock shows 10:00.
func TestCalendar(t *testing.T) {
	c := newClock()
	p := runAt(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: daily, limit: 2/day in America/Sao_Paulo}
  - {name: both, match: {paths: [/both]}, limits: [{rate: 9/week}, {rate: 9/month}]}
`, behind(t, nil).URL), c.Now)
	const rest = 14 * 3600
	require.Equal(t, map[string]int64{"max_requests": 2, "requests": 0, "remaining": 2, "ttl": rest, "reset": c.Now().Unix() + rest}, p.status(t, "/"))
	a := p.get(t, "/both")
	require.Equal(t, `"daily";q=2, "both.week";q=9, "both.month";q=9`, a.Header.Get("RateLimit-Policy"))
	require.True(t, p.passes(t, "/"))
	a = p.get(t, "/")
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.Equal(t, strconv.Itoa(rest), a.Header.Get("Retry-After"))
	c.Advance(rest*time.Second - time.Microsecond)
	require.False(t, p.passes(t, "/"))
	c.Advance(time.Microsecond)
	require.True(t, p.passes(t, "/"))
}

func TestTiers(t *testing.T) {
	c := newClock()
	p := runAt(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - name: plan
    key: "{header.X-Api-Key}"
    limit: 1/60s
    tiers:
      - {keys: [gold], limit: 3/10m}
      - {match: {headers: {X-Plan: silver}}, limit: 2/60s}
`, behind(t, nil).URL), c.Now)
	for _, tier := range []struct {
		headers []string
		limit   int
		ttl     int64
	}{
		{[]string{"X-Api-Key", "gold"}, 3, 600},
		{[]string{"X-Api-Key", "golden"}, 1, 60},
		{[]string{"X-Api-Key", "other", "X-Plan", "silver"}, 2, 60},
		{nil, 1, 60},
	} {
		s := p.status(t, "/", tier.headers...)
		require.EqualValues(t, tier.limit, s["max_requests"])
		require.Equal(t, tier.ttl, s["ttl"])
		for range tier.limit {
			require.True(t, p.passes(t, "/", tier.headers...))
		}
		require.False(t, p.passes(t, "/", tier.headers...))
		require.EqualValues(t, tier.limit, p.status(t, "/", tier.headers...)["requests"])
	}
	require.EqualValues(t, 3, statusIn(t, p.get(t, "/status/gold"))["max_requests"], "by the path, too")
	require.EqualValues(t, 1, statusIn(t, p.get(t, "/status/unknown"))["max_requests"])
}

func TestAllowAndDenyLists(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
trusted_proxies: [127.0.0.0/8]
upstreams: {main: {url: %q}}
rules:
  - name: limit
    key: "{header.X-Key}"
    limit: 1/60s
    allow: [friend, 192.0.2.0/24, "::ffff:203.0.113.9"]
    deny: [enemy, 198.51.100.7, "2001:db8::/32"]
`, up.URL))
	for range 3 {
		require.True(t, p.passes(t, "/", "X-Key", "friend"))
		require.True(t, p.passes(t, "/", "X-Forwarded-For", "192.0.2.77"))
		require.True(t, p.passes(t, "/", "X-Forwarded-For", "203.0.113.9"))
	}
	n := up.n.Load()
	for _, h := range [][]string{{"X-Key", "enemy"}, {"X-Forwarded-For", "198.51.100.7"}, {"X-Forwarded-For", "2001:db8::1"}, {"X-Key", "friend", "X-Forwarded-For", "198.51.100.7"}} {
		require.Equal(t, 403, p.get(t, "/", h...).StatusCode)
	}
	require.Equal(t, n, up.n.Load())
	require.Contains(t, p.metrics(t, "ratelimit_proxy_listed"), `{rule="limit",list="denied"} 4`)
	require.True(t, p.passes(t, "/", "X-Key", "x"))
	require.False(t, p.passes(t, "/", "X-Key", "x"))
}

// TestRepeatedKeys has requests with several headers, cookies or parameters of the same name. The upstream may read
// any of them.
func TestRepeatedKeys(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - name: key
    match: {paths: [/key]}
    key: "{header.X-Key}"
    limit: 3/60s
    allow: [friend]
    deny: [enemy]
    tiers: [{keys: [large], limit: 9/60s}]
  - {name: query, match: {paths: [/query]}, key: "{query.key}", limit: 9/60s, deny: [enemy]}
  - {name: cookie, match: {paths: [/cookie]}, key: "{cookie.key}", limit: 9/60s, deny: [enemy], allow: [friend]}
  - {name: auth, match: {paths: [/auth]}, limit: 3/60s, deny: [Bearer enemy], tiers: [{keys: [Bearer large], limit: 9/60s}]}
`, up.URL))
	for _, h := range [][]string{{"X-Key", "x", "X-Key", "enemy"}, {"X-Key", "enemy", "X-Key", "x"}} {
		require.Equal(t, 403, p.get(t, "/key", h...).StatusCode)
	}
	require.Equal(t, 403, p.get(t, "/query?key=x&key=enemy").StatusCode)
	for _, cookie := range []string{"key=x; key=enemy", "key= enemy", "key=enemy ; a=b", "key=%65nemy"} {
		require.Equal(t, 403, p.get(t, "/cookie", "Cookie", cookie).StatusCode, cookie)
	}
	for _, spelled := range []string{"Bearer enemy", "bearer enemy", "BEARER   enemy", "Bearer\tenemy", "bearer \t enemy"} {
		require.Equal(t, 403, p.get(t, "/auth", "Authorization", spelled).StatusCode)
	}
	require.Zero(t, up.n.Load())
	require.Equal(t, 200, p.get(t, "/auth", "Authorization", "Bearer Enemy").StatusCode, "the rest of it is as it is")
	require.Equal(t, "9", p.get(t, "/auth", "Authorization", "bearer  large").Header.Get("X-RateLimit-MaxRequests"))
	require.Equal(t, "7", p.get(t, "/auth", "Authorization", "Bearer\tlarge").Header.Get("X-RateLimit-Remaining"), "the same quota")

	for _, h := range [][]string{{"X-Key", "friend", "X-Key", "x"}, {"X-Key", "large", "X-Key", "x"}} {
		require.Equal(t, "3", p.get(t, "/key", h...).Header.Get("X-RateLimit-MaxRequests"), "counted by the address")
	}
	require.Equal(t, "9", p.get(t, "/cookie", "Cookie", "key=friend; key=x").Header.Get("X-RateLimit-MaxRequests"))
	require.Empty(t, p.get(t, "/cookie", "Cookie", "key=friend").Header.Get("X-RateLimit-MaxRequests"))
	require.Empty(t, p.get(t, "/key", "X-Key", "friend").Header.Get("X-RateLimit-MaxRequests"))
	require.Equal(t, "9", p.get(t, "/key", "X-Key", "large").Header.Get("X-RateLimit-MaxRequests"))
}

func TestCosts(t *testing.T) {
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: three, match: {paths: [/three]}, limit: 7/60s, cost: "3"}
  - {name: header, match: {paths: [/header]}, limit: 7/60s, cost: "{header.x-cost}"}
`, behind(t, nil).URL))
	require.True(t, p.passes(t, "/three"))
	require.True(t, p.passes(t, "/three"))
	require.False(t, p.passes(t, "/three"))
	require.EqualValues(t, 1, p.status(t, "/three?rule=three", "X-Cost", "1")["remaining"])
	require.True(t, p.passes(t, "/header"))
	require.True(t, p.passes(t, "/header", "X-Cost", "5"))
	require.False(t, p.passes(t, "/header", "X-Cost", "2"))
	for _, bad := range []string{"0", "-1", "x", "1.5", "99999999999999999999"} {
		require.Equal(t, 400, p.get(t, "/header", "X-Cost", bad).StatusCode)
	}
	require.Equal(t, 400, p.get(t, "/header", "X-Cost", "1", "X-Cost", "5").StatusCode, "the upstream may read any of them")
	tooLarge := p.get(t, "/header", "X-Cost", "8")
	require.True(t, tooLarge.StatusCode >= 400 && tooLarge.StatusCode < 500, tooLarge.body)
	require.Contains(t, p.metrics(t, "ratelimit_proxy_decisions"), `{rule="header",decision="refused"} 7`)
	require.Contains(t, p.metrics(t, "ratelimit_proxy_decisions"), `{rule="header",decision="error"} 0`)
	require.EqualValues(t, 6, p.status(t, "/header")["requests"])
}

func TestShadow(t *testing.T) {
	up, c := behind(t, nil), newClock()
	p := runAt(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: tried, key: "{client.ip}", limit: 2/60s, shadow: true}
  - {name: real, key: "{client.ip}", limit: 7/60s}
`, up.URL), c.Now)
	for range 7 {
		a := p.get(t, "/")
		require.Equal(t, 200, a.StatusCode)
		require.Equal(t, `"real";q=7;w=60`, a.Header.Get("RateLimit-Policy"), "clients learn nothing of a try")
		require.Equal(t, "7", a.Header.Get("X-RateLimit-MaxRequests"))
	}
	require.False(t, p.passes(t, "/"))
	m := p.metrics(t, "ratelimit_proxy")
	require.Contains(t, m, `decisions_total{rule="tried",decision="shadow_denied"} 6`)
	require.Contains(t, m, `decisions_total{rule="tried",decision="denied"} 0`)
	require.Contains(t, m, `max_consecutive_denials{rule="tried"} 6`)
	lines := p.log.lines("a shadow rule")
	require.Len(t, lines, 1, "of one second")
	require.Contains(t, lines[0], `"rule":"tried"`)
	c.Advance(time.Second)
	require.False(t, p.passes(t, "/"))
	require.Len(t, p.log.lines("a shadow rule"), 2)
	require.EqualValues(t, 7, p.status(t, "/")["max_requests"])
	require.Equal(t, 404, p.get(t, "/?rule=tried", "X-RateLimit-Status", "true").StatusCode)
}

// TestPathAndHostKeys checks that all spellings of a path or a host share a quota.
func TestPathAndHostKeys(t *testing.T) {
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: path, match: {paths: ["/x/**"]}, key: "{path}", limit: 4/60s}
  - {name: host, match: {paths: [/host]}, key: "{host}", limit: 3/60s}
`, behind(t, nil).URL))
	for _, path := range []string{"/x/a", "/x//a", "/x/a//", "/%78/a/"} {
		require.True(t, p.passes(t, path), path)
	}
	require.False(t, p.passes(t, "/x/a"))
	require.True(t, p.passes(t, "/x/c"))
	for _, host := range []string{"example.com", "EXAMPLE.com:8080", "example.com."} {
		require.True(t, p.passes(t, "/host", "Host", host), host)
	}
	require.False(t, p.passes(t, "/host", "Host", "example.com"))
}

func TestKeysAreHashed(t *testing.T) {
	for _, key := range []string{"{header.Authorization}", "{cookie.id}", "{query.key}", "{header.X-A}-{query.key}"} {
		by, err := newClients(&config.Config{})
		require.NoError(t, err)
		made, err := config.ParseKey(key)
		require.NoError(t, err)
		r := httptest.NewRequest("GET", "/?key=secret", nil)
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("X-A", "secret")
		r.AddCookie(&http.Cookie{Name: "id", Value: "secret"})
		got, err := keyFunc(made, by.key)(t.Context(), r)
		require.NoError(t, err)
		require.NotContains(t, got, "secret")
	}
}

func TestRoutes(t *testing.T) {
	a := behind(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a", r.URL.RequestURI()) })
	b := behind(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "b", r.URL.RequestURI(), r.Host) })
	host, err := url.Parse(b.URL)
	require.NoError(t, err)
	p := run(t, parse(t, `
upstreams: {a: {url: "%s/base/"}, b: {url: %q, host: upstream}}
routes:
  - {match: {paths: ['/a/**'], hosts: [example.com]}, upstream: a}
  - {match: {paths: ['/b/**']}, upstream: b}
`, a.URL, b.URL))
	require.Equal(t, "a/base/a/x%2Fy?q=1;2&%zz", p.get(t, "/a/x%2Fy?q=1;2&%zz", "Host", "example.com").body, "as it came")
	require.Equal(t, "b/b//x/y"+host.Host, p.get(t, "/b//x/y").body, "and not cleaned")
	require.Equal(t, 404, p.get(t, "/a/x").StatusCode)
	require.Equal(t, 404, p.get(t, "/").StatusCode)
}
