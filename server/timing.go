package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// addServerTiming adds the duration of each property that was resolved so far, in
// milliseconds, to the header. Without any there is no such field.
func addServerTiming(h http.Header, c *reqctx.Context) {
	var b strings.Builder
	for name, info := range c.Props() {
		if info.State != reqctx.Resolved && info.State != reqctx.Failed {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(token(name))
		b.WriteString(";dur=")
		b.WriteString(strconv.FormatFloat(float64(info.Took.Microseconds())/1000, 'f', -1, 64))
		if info.State == reqctx.Failed {
			b.WriteString(`;desc="failed"`)
		}
	}
	if b.Len() > 0 {
		h.Add("Server-Timing", b.String())
	}
}

// token replaces characters that a metric's name must not contain.
func token(name string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return r
		}
		return '_'
	}, name)
}
