package session

import (
	"net/http"
	"strings"
)

// makePrivate keeps the response, which has somebody's token, out of shared
// caches. It leaves no-store and private as they are.
func makePrivate(h http.Header) {
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
