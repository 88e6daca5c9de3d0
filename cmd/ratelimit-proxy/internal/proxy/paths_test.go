package proxy

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuerySpellingsDoNotBypassRules checks that an ambiguous query is refused if a rule's key contains a query
// parameter.
func TestQuerySpellingsDoNotBypassRules(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: deny, match: {paths: [/deny]}, key: "{query.secret}", missing: skip, limit: 1000/h, deny: ["2", "a+b"]}
  - {name: count, match: {paths: [/count]}, key: "{client.ip}/{query.k}", missing: skip, limit: 1/h}
`, up.URL))
	for _, query := range []string{"secret=2", "a=1&secret=2", "%73ecret=%32", "secret=1&secret=2", "secret=2&secret=1", "secret=a+b", "secret=a%2Bb", "secret=a%20b"} {
		require.Equal(t, 403, p.get(t, "/deny?"+query).StatusCode, query)
	}
	for _, query := range []string{"a=1;secret=2", "secret=2;a=1", ";secret=2", "secret=2%", "secret=%zz", "%zz&secret=1", "secret=2%00", "secret%00=2", "secret=2#1", "secret=2#"} {
		got := p.send(t, "GET /deny?"+query+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%s: %s", query, got)
	}
	require.Zero(t, up.n.Load())
	require.True(t, p.passes(t, "/other?a=1;secret=2"), "no rule goes by it")
	require.Equal(t, "a=1;secret=2", up.last.Load().URL.RawQuery)

	require.True(t, p.passes(t, "/count?k=a+b"))
	for _, query := range []string{"k=a+b", "k=a%2Bb", "k=a%20b", "%6b=%61+b", "x=1&k=a+b"} {
		require.False(t, p.passes(t, "/count?"+query), query)
	}
}

// TestCookieSpellingsDoNotBypassRules checks that an ambiguous cookie is refused if a rule's key contains this
// cookie.
func TestCookieSpellingsDoNotBypassRules(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules: [{name: deny, match: {paths: [/deny]}, key: "{cookie.key}", missing: skip, limit: 1000/h, deny: [enemy, "a b"]}]
`, up.URL))
	many := strings.Repeat(";", 3000)
	for _, cookie := range []string{
		"key=enemy" + many, many + "key=enemy", "a=1 key=enemy", "a=1,key=enemy", "a=1\tkey = enemy", "a=1\xa0key=enemy", "key=enemy,x", "key=enemy x",
		`key="enemy`, `key="ene\155y"`, "key=enemy\xff", `a="; key="enemy`, "key=x; a=b key=enemy",
	} {
		require.Equal(t, 400, p.get(t, "/deny", "Cookie", cookie).StatusCode, cookie)
	}
	require.Equal(t, 400, p.get(t, "/deny", "Cookie", many, "Cookie", "key=enemy").StatusCode)
	for _, cookie := range []string{"key=enemy", `key="enemy"`, " key = enemy ", "a=1;key=enemy", "key=a%20b", "key=x; key=enemy", `a="1"; b=2 3; key=enemy`} {
		require.Equal(t, 403, p.get(t, "/deny", "Cookie", cookie).StatusCode, cookie)
	}
	require.Equal(t, 403, p.get(t, "/deny", "Cookie", "key=x", "Cookie", "key=enemy").StatusCode)
	require.Zero(t, up.n.Load())
	for _, cookie := range []string{"key=friend", many, "a=key; keys=1; xkey=2", "KEY=3", "a=1 2, 3"} {
		require.True(t, p.passes(t, "/deny", "Cookie", cookie), cookie)
	}
	require.True(t, p.passes(t, "/other", "Cookie", "a=1 key=enemy"), "no rule counts by it")

	parameters := strings.Repeat("&", 10000)
	require.Equal(t, 403, p.get(t, "/deny?"+parameters, "Cookie", "key=enemy").StatusCode)
	p = run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: a, key: '{query.key}', missing: skip, limit: 1/h}]\n", up.URL))
	require.Equal(t, 400, p.get(t, "/?key=1"+parameters).StatusCode)
}

// TestPathSpellingsDoNotBypassRules checks that a path that servers read in several ways is refused, if the rules
// differ for these readings.
func TestPathSpellingsDoNotBypassRules(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}}
rules:
  - {name: static, match: {paths: [/static/**]}, key: "{client.ip}", limit: 1000/h, last: true}
  - {name: login, match: {paths: [/login/**]}, key: "{client.ip}", limit: 1/h}
  - {name: orders, match: {paths: [/users/*/orders]}, key: "{client.ip}", limit: 1/h}
`, up.URL))
	require.True(t, p.passes(t, "/login"))
	require.True(t, p.passes(t, "/users/7/orders"))
	for _, path := range []string{
		"/login", "/login/", "//login", "/login//x", "/%6cogin", "/log%69n/x", "/login/a;b=c", "/login/a%2Fb", "/login%2Fx;y/..%5Cz",
	} {
		if got := p.send(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			require.True(t, strings.HasPrefix(got, "HTTP/1.1 429 "), "%s: %s", path, got)
		}
	}
	before := up.n.Load()
	for _, path := range []string{
		"/x/../login", "/x/%2e%2e/login", "/x/%2e./login", "/x/..%2Flogin", "/x/..%2flogin", "/x%2F..%2Flogin", "/login;x", "/login;x/y", "/;/login", "/login%3Bx",
		"/static/..;/login", "/static/..;x=y/login", "/static/%2e%2e;/login", "/static/../login", "/static;/../login", "/static/..%5Clogin", "/static\\..\\login",
		"/login\\x", "/login%5Cx", "/login/..", "/login/../static/x", "/login/..%2Fstatic/x", "/login/x%2F..%2F..%2Fstatic", "/x/..;/login/..%2fy",
		"/users/a%2Fb/orders", "/users/7%2Forders", "/users/7/orders;x", "/users/a%5Cb/orders",
		"/login%00", "/login%00/x", "/other/%00", "/login%09", "/lo%0Agin", "/other/%7f", "/other/%C2%85",
		"///evil/login", "////evil/login", "/\\evil/login", "/%5cevil/login", "/%2fevil/login", "/;/evil/login", "//evil%2Flogin", "///evil/users/7/orders", // servers that parse URLs as browsers do read /login
		"/login;%2Fx", // some servers remove parameters before they decode %2F
	} {
		got := p.send(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%s: %s", path, got)
	}
	require.Equal(t, before, up.n.Load())
	for _, path := range []string{"//evil/login", "//evil:80/login/x", "//evil//login", "//evil/users/7/orders"} { // according to RFC 3986, the path of the URL //evil/login is /login
		got := p.send(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%s: %s", path, got)
	}
	for _, path := range []string{"/other//a", "//other/a", "///other//a", "/other/a;%2Fb", "/other/a;b=c", "/other/a%2Fb", "/other/.well-known/x", "/other/..x", "/other/a\\b", "/other/a%20b", "/static/a;b", "/static/a%2Fb/c", "/static/b..c/;x"} {
		got := p.send(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "%s: %s", path, got)
		require.Equal(t, strings.ReplaceAll(path, "\\", "%5C"), up.last.Load().RequestURI, "it goes on as it came")
	}

	p = run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: each, key: '{path}', limit: 1/h, deny: [/bad/], allow: [/free]}]\n", up.URL))
	require.True(t, p.passes(t, "/a/b"))
	require.False(t, p.passes(t, "/a//b/"))
	require.True(t, p.passes(t, "/free"))
	require.True(t, p.passes(t, "/free/"))
	require.Equal(t, 403, p.get(t, "/bad//").StatusCode)
	for _, path := range []string{"//a//b/", "/a/./b", "//bad", "//host/bad", "/a/b;x", "/a/c/../b", "/a%2Fb", "/bad;x", "/a/..%2Ffree"} {
		require.Equal(t, 400, p.get(t, path).StatusCode, path)
	}
	p = run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: each, key: '{client.ip} {path}', limit: 1/h}]\n", up.URL))
	require.True(t, p.passes(t, "/login"))
	for _, path := range []string{"/login//", "/login;x", "/%6cogin"} {
		require.False(t, p.passes(t, path), path)
	}
	for _, path := range []string{"//a/login", "///b/login", "/%5Cc/login", "/;/d/login"} {
		require.Equal(t, 400, p.get(t, path).StatusCode, path)
	}
	for _, path := range []string{"/a;b", `/a\b`} {
		require.ErrorContains(t, Check(parse(t, "upstreams: {main: {url: http://a}}\nroutes: [{upstream: main, match: {paths: ['%s']}}]", path)), "never matches")
	}
}

// TestReadPath checks that readPath returns the readings of different servers.
func TestReadPath(t *testing.T) {
	r := httptest.NewRequest("GET", "/a//b%2Fc%5Cd%20e;y/f", nil)
	require.Equal(t, "/a/b/c/d e/f", cleanPath(r))
	got := map[string]bool{}
	for how := range allReadings + 1 {
		got[readPath(r.URL.EscapedPath(), how)] = true
	}
	for _, want := range []string{`/a/b%2Fc\d e;y/f`, `/a/b/c\d e;y/f`, `/a/b%2Fc/d e;y/f`, `/a/b%2Fc\d e/f`, `/a/b/c/d e/f`} {
		require.True(t, got[want], "%s in %v", want, got)
	}
	require.False(t, isAmbiguous(httptest.NewRequest("GET", "/a//b/c.d/%20/%C3%BC", nil)))
}

// FuzzPath reads a request's target in each way that readPath supports. If a path is not ambiguous, all readings must
// be equal.
func FuzzPath(f *testing.F) {
	for _, target := range []string{
		"/", "//host/a", "/a/../b", "/a%2Fb", "/a;x=y/b", `/a\b`, "/a%5cb", "/a//b/c/", "/%252e%252e/",
		"http://h/a/%2F", "/..", "/a%00b", "*",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, " \r\n") {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil || hasDotSegment(r) {
			return
		}
		cleaned := cleanPath(r)
		require.True(t, strings.HasPrefix(cleaned, "/"), cleaned)
		require.Equal(t, path.Clean(cleaned), cleaned, "of %q", target)
		for how := range allReadings + 1 {
			read := readPath(r.URL.EscapedPath(), how)
			require.True(t, strings.HasPrefix(read, "/"), read)
			if !isAmbiguous(r) {
				require.Equal(t, cleaned, read, "%q is not ambiguous", target)
			}
		}
	})
}
