package server

import (
	"net/http"
	"slices"
)

// commit runs the properties' Commit functions, once, with the response's status. If that fails,
// it answers with a problem.
func (g *gate) commit(status int) error {
	if g.nested != nil || g.x.host.CommitUnused() {
		return nil // net/http need not copy a header that was never asked for
	}
	timing := g.x.srv.opts.ServerTiming && !g.x.host.Committed()
	own := g.Header()["Set-Cookie"]
	err := g.x.host.Commit(status, g.Header())
	switch {
	case err != nil:
		g.x.seen.fail(err)
		p := commitProblem(err)
		if p.status() >= 500 {
			g.x.logFailure(err, "response replaced: a property could not be committed")
		}
		// A property that did commit has changed what the client must know: a
		// renewed session is lost without its cookie.
		g.fail(p, added(own, g.Header()["Set-Cookie"]))
	case timing:
		addServerTiming(g.Header(), &g.x.host.Context)
	}
	return err
}

// commitProblem is the response when the handler's could not be committed: a failure of
// the server, whatever problem the error describes, or a conflict with another request,
// which the client can resolve.
func commitProblem(err error) *Problem {
	p := asProblem(err)
	if p.status() < 500 && p.status() != http.StatusConflict {
		p = &Problem{Status: http.StatusInternalServerError, Err: err}
	}
	return p
}

// added returns the lines that were not there before.
func added(before, lines []string) (fresh []string) {
	for _, line := range lines {
		if !slices.Contains(before, line) {
			fresh = append(fresh, line)
		}
	}
	return fresh
}
