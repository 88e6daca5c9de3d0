package session

import (
	"net/http"
	"strings"
)

// makePrivate keeps the response, which has somebody's token, out of shared
// caches. It leaves no-store and private as they are, and takes away what some of
// those caches go by instead of Cache-Control (RFC 9213).
func makePrivate(h http.Header) {
	for name := range h {
		if strings.HasSuffix(name, "Cdn-Cache-Control") || name == "Surrogate-Control" {
			delete(h, name)
		}
	}
	var kept []string
	for _, line := range h["Cache-Control"] {
		for d := range strings.SplitSeq(line, ",") {
			d = strings.TrimSpace(d)
			switch name, _, _ := strings.Cut(strings.ToLower(d), "="); {
			case d == "", name == "public", name == "s-maxage", strings.EqualFold(d, "private"):
			case name == "no-store":
				return
			default:
				kept = append(kept, d)
			}
		}
	}
	h["Cache-Control"] = []string{strings.Join(append([]string{"private"}, kept...), ", ")}
}
