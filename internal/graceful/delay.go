package graceful

import (
	"io"
	"net/http"
	"strings"
)

// DelayClose makes net/http wait for half a second, after the response, before it closes the connection of
// w, which it ends. net/http does so by itself when it leaves a part of a body unread, but not if the client has
// asked for the end of the connection, and before Go 1.27 not after "Expect: 100-continue". It then closes at
// once, and the reset can reach the client before the response.
func DelayClose(w http.ResponseWriter) {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	// An exceeded MaxBytesReader has this effect.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// ClosesAtOnce reports whether net/http needs [DelayClose] if it leaves a part of r's body unread.
func ClosesAtOnce(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.Close || r.Header.Get("Expect") != "")
}
