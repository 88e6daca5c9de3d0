package proxy

import (
	"bufio"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// raw sends a GET request with exactly this path. The client of net/http would change some paths.
func (r *running) raw(tb testing.TB, path string) (response string) {
	tb.Helper()
	return r.send(tb, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

// TestUpstreamPathIsBoundary checks that no path is forwarded that an upstream could resolve to a path above its URL.
func TestUpstreamPathIsBoundary(t *testing.T) {
	up := behind(t, nil)
	c := parse(t, "upstreams: {main: {url: '%s/public'}}\n", up.URL)
	p := run(t, c)
	overHTTP2 := overTLS(t, c)
	for _, path := range []string{
		"/..", "/../secret", "/../public/x", "/./../secret", "/%2e%2e/secret", "/.%2E/secret", "/..%2fsecret", "/%2e%2e%2fsecret", "/..;/secret", "/..;a=b/secret",
		"/..\\secret", "/..%5csecret", "/%5c../secret", "/a/../../secret", "/a/..%2f../secret", "/a%2Fb/../../secret", "/a/;/../../secret", "//../secret", "/a//../../secret",
		"/%252e%252e/secret", "/%25252e./secret", "/..%252fsecret", "/..%255csecret", "/x%252f..%252f../secret", "/..%253bx/secret", "/%252e%252e", // these are dangerous if they are decoded twice
		"/..%3bx/secret", "/x;%2f..;%2f../secret", "/;/../secret", "/..%3fx/secret", "/..%23/secret", "/..%20/secret", "/x/%2e%2e;y/..%2fz/..",
		"/a/../b", "/a/./b", "/x/..%2Fb", "/a//b/../..", "/a/..;/b", "/a/%252e%252e/x", "/.%20/a", "/a;x/..", "//host/../x", // these do not lead above the root, but are refused as well
		"/..%00/secret", "/..%2500/secret", "/%25zz%252f..%252f../secret", "/a;%2fb/../../secret", "/..%2fsecret|", "/a%2fb|/../../secret", "/..%2f\xff",
	} {
		got := p.raw(t, path)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 "), "%s: %s", path, got)
		require.Equal(t, 400, overHTTP2.sendFields(t, ":method", "GET", ":path", path, ":scheme", "https", ":authority", "a"), path)
	}
	require.Zero(t, up.n.Load())
	for _, path := range []string{
		"/..a/b", "/...", "/a..%252fb", "/100%25", "/%25zz/a%252Fb", "//host/x", "/a%3f..", "/.a%20/b", "/a;x/.b",
	} {
		got := p.raw(t, path)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "%s: %s", path, got)
		require.Equal(t, "/public"+path, up.last.Load().RequestURI)
		require.Equal(t, 200, overHTTP2.sendFields(t, ":method", "GET", ":path", path, ":scheme", "https", ":authority", "a"), path)
	}
}

// TestPathsArePassedOn checks that the proxy escapes characters that a path can't contain, and leaves the rest of the
// path as it is.
func TestPathsArePassedOn(t *testing.T) {
	up := behind(t, nil)
	p := run(t, parse(t, `
upstreams: {main: {url: %q}, below: {url: '%s/public'}}
routes: [{upstream: below, match: {hosts: [b]}}, {upstream: main}]
`, up.URL, up.URL))
	overHTTP2 := overTLS(t, p.current.Load().config)
	for path, want := range map[string]string{
		"/a%2Fb|c": "/a%2Fb%7Cc", "/a%2fb\"<>^`{}\\": "/a%2fb%22%3C%3E%5E%60%7B%7D%5C", "/a%2Fb\xe4\xc3\xa4\xff": "/a%2Fb%E4%C3%A4%FF", "/a%3Bb|": "/a%3Bb%7C",
		"/%61%25%7C|": "/%61%25%7C%7C", "/a%2Fb[!$&'()*+,;=:@-._~]": "/a%2Fb[!$&'()*+,;=:@-._~]", "/a|b": "/a%7Cb", "/a%2Fb": "/a%2Fb", "/a b%2Fc": "/a%20b%2Fc",
	} {
		for host, prefix := range map[string]string{"a": "", "b": "/public"} {
			if !strings.Contains(path, " ") {
				p.send(t, "GET "+path+"?x|y HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
				require.Equal(t, prefix+want+"?x|y", up.last.Load().RequestURI)
			}
			require.Equal(t, 200, overHTTP2.sendFields(t, ":method", "GET", ":path", path, ":scheme", "https", ":authority", host))
			require.Equal(t, prefix+want, up.last.Load().RequestURI)
		}
	}
}

// upwards returns many paths. If they are appended to /public, some servers read them as /secret.
func upwards() (paths []string) {
	for _, before := range []string{"/", "//", "/./", "/;x/", "/%5c", "/%2f", "/a/../", "/a/%252e%252e/", "/twice/", "/twice/../"} {
		for _, up := range []string{
			"..", "%2e%2e", ".%2E", "%252e%252e", "..;", "..;a=b", "..%3b", "..%20", "..%3f", "..%00", "..%2500",
			"x%2f..%2f..", "x\\..\\..", "x%5C..%5c..", "x%252f..%252f..", "%25zz%252f%252e%252e%252f..", "../..", ".../..",
		} {
			for _, after := range []string{"", "/secret", "//secret", "\\secret", "%2fsecret", "%5csecret", "%252fsecret", "/;/secret", "/./secret"} {
				paths = append(paths, before+up+after)
			}
		}
	}
	return paths
}

// TestNginxStaysBelowUpstreamPath checks the same with nginx. One of nginx's locations decodes paths twice.
func TestNginxStaysBelowUpstreamPath(t *testing.T) {
	url, docs := startNginx(t)
	for name, text := range map[string]string{"secret": "not for clients", "public/open": "for clients", "inner/twice/open": "for clients"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(docs, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644))
	}
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\n", url+"/public"))
	for _, path := range []string{"/open", "/twice/open"} {
		require.Contains(t, p.raw(t, path), "\r\n\r\nfor clients", path)
	}
	for _, path := range upwards() {
		require.NotContains(t, p.raw(t, path), "not for clients", path)
	}
}

// FuzzDotSegments compares hasDotSegment with the different ways in which servers read paths.
func FuzzDotSegments(f *testing.F) {
	for i, path := range upwards() {
		f.Add(path, uint64(i)*0x9e3779b97f4a7c15)
	}
	readings := []func(p string) string{
		decode,
		path.Clean,
		func(p string) string { return strings.ReplaceAll(p, `\`, "/") },
		func(p string) string { return eachName(p, func(name string) string { return cutAt(name, ";") }) },
		func(p string) string { return eachName(p, strings.TrimSpace) },
		func(p string) string { return cutAt(p, ";") },
		func(p string) string { return cutAt(p, "?#\x00") },
	}
	f.Fuzz(func(t *testing.T, target string, order uint64) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil || !strings.HasPrefix(r.URL.Path, "/") || hasDotSegment(r) {
			return
		}
		p := "/public" + r.URL.EscapedPath()
		for decoded := 0; order > 0; order >>= 3 {
			way := min(int(order&7), len(readings)-1)
			if way == 0 {
				decoded++
			}
			if decoded <= maxDecodings {
				p = readings[way](p)
			}
			got := path.Clean(p)
			require.True(t, got == "/public" || strings.HasPrefix(got, "/public/"), "%q is read as %q", target, got)
		}
	})
}

func eachName(p string, read func(string) string) string {
	names := strings.Split(p, "/")
	for i := range names {
		names[i] = read(names[i])
	}
	return strings.Join(names, "/")
}

func cutAt(p, chars string) string {
	if i := strings.IndexAny(p, chars); i >= 0 {
		return p[:i]
	}
	return p
}
