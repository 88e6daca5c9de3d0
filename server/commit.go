package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// commit calls the properties' Commit functions once, with the status of the response, or of the error that it answers.
// So a policy can tell a failed login from a successful one if both are redirected. If a function fails, commit answers
// with a problem.
func (g *gate) commit(status int) error {
	if g.nested != nil || g.x.host.CommitUnused() {
		return nil // and never call Header, because net/http copies it then
	}
	timing := g.x.srv.opts.ServerTiming && !g.x.host.Committed()
	own := g.Header()["Set-Cookie"]
	err := g.x.host.Commit(g.x.statusOfError(status), g.Header())
	switch {
	case err != nil:
		g.x.seen.fail(err)
		p := commitProblem(err)
		if p.status() >= 500 {
			g.x.logFailure(err, "response replaced: a property could not be committed")
		}
		// The client needs the cookies of properties that were committed: it would lose a renewed session.
		g.fail(p, added(own, g.Header()["Set-Cookie"]))
	case timing:
		addServerTiming(g.Header(), &g.x.host.Context)
	}
	return err
}

// commitProblem returns the problem of a failed commit. It is a failure of the server, whatever problem the error
// describes, except for a conflict, which the client can resolve.
func commitProblem(err error) *Problem {
	p := asProblem(err)
	if p.status() < 500 && p.status() != http.StatusConflict {
		p = &Problem{Status: http.StatusInternalServerError, Err: err}
	}
	return p
}

// added returns the elements of lines that are not in before.
func added(before, lines []string) (fresh []string) {
	for _, line := range lines {
		if !slices.Contains(before, line) {
			fresh = append(fresh, line)
		}
	}
	return fresh
}

// addServerTiming adds a field with the durations of the properties that were resolved, in milliseconds. If there are
// none, it adds no field.
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

// token replaces characters that the name of a metric must not contain.
func token(name string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return r
		}
		return '_'
	}, name)
}
