package proxy

import (
	"bufio"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPath reads a request's target in all the ways that servers do.
func FuzzPath(f *testing.F) {
	for _, target := range []string{
		"/", "//host/a", "/a/../b", "/a/..%2Fb", "/a/%2e%2e/b", "/a;x=y/b", `/a\..\b`, "/a%5c..%5cb", "/a//b/./c/", "/%252e%252e/",
		"http://h/a/%2F", "/..", "/a%00b", "*",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, " \r\n") {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return
		}
		cleaned := cleanPath(r)
		require.True(t, strings.HasPrefix(cleaned, "/"), cleaned)
		require.Equal(t, path.Clean(cleaned), cleaned, "of %q", target)
		for how := range allReadings + 1 {
			read := readPath(r.URL.EscapedPath(), how)
			require.True(t, strings.HasPrefix(read, "/"), read)
			if how&dots != 0 {
				require.NotContains(t, strings.Split(read, "/"), "..", "of %q read as %d", target, how)
			}
			if !isAmbiguous(r) && how&dots != 0 {
				require.Equal(t, cleaned, read, "%q is not ambiguous", target)
			}
		}
	})
}
