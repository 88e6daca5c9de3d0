package server

import (
	"maps"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// answer is an error response: a [*Problem], or the [*page] that Options.WriteProblem has written in
// its place. Its header fields are in the header of the response already.
type answer interface {
	status() int
	write(w http.ResponseWriter)
}

// prepare returns the answer to r: p, unless Options.WriteProblem writes another. The fields of the
// header that describe the handler's response are replaced.
func (g *gate) prepare(r *http.Request, p *Problem) answer {
	g.clearRepresentation()
	h := g.Header()
	if g.x.srv.opts.WriteProblem == nil {
		p.addHeader(h)
		return p
	}
	pg := &page{g: g, r: r, p: ProblemOf(p)}
	if !g.x.writing.CompareAndSwap(nil, pg.p) { // another error is being written
		p.addHeader(h)
		return p
	}
	before := h.Clone()
	pg.p.addHeader(h)
	problem.SetRetryAfter(h, pg.p.Status, pg.p.Err)
	given := h.Clone()
	switch {
	case !g.x.writeProblem(pg):
		clear(h)
		maps.Copy(h, before)
		p.addHeader(h)
		return p
	case pg.code != 0 && !pg.failed:
		return pg
	}
	for name := range given { // WriteProblem may have changed p.Header
		if slices.Equal(h[name], given[name]) {
			h[name] = before[name]
		}
	}
	g.clearRepresentation()
	pg.p.addHeader(h)
	return pg.p
}

// writeProblem calls Options.WriteProblem, and reports whether it has returned. It logs a panic. After
// a panic or a [runtime.Goexit], WriteProblem is not called again for the request.
func (x *exchange) writeProblem(pg *page) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			x.logPanic(v)
		}
	}()
	x.srv.opts.WriteProblem(pg, pg.r, pg.p)
	x.writing.Store(nil)
	return true
}

// clearRepresentation removes the fields that describe the handler's response, except the coding of a
// middleware.
func (g *gate) clearRepresentation() {
	clearRepresentation(g.Header())
	if g.nested != nil && len(g.nested.coding) > 0 {
		g.Header()["Content-Encoding"] = g.nested.coding
	}
}

// problem answers r with p, and has the properties committed: a denied request still gets its
// rate-limit fields, a failed login its session.
func (g *gate) problem(r *http.Request, p *Problem) {
	a := g.prepare(r, p)
	if g.commit(a.status()) == nil {
		g.send(a)
	}
}

// fail answers with p in place of the response that the handler has prepared, without a commit. Only
// these cookies go out: the others would promise what did not happen.
func (g *gate) fail(p *Problem, cookies []string) {
	h := g.Header()
	h.Del("Set-Cookie")
	if len(cookies) > 0 {
		h["Set-Cookie"] = cookies
	}
	g.send(g.prepare(g.x.host.Request(), p))
}

// send sends a as the response.
func (g *gate) send(a answer) {
	g.announceEnd()
	g.deadline.extend(g.ResponseWriter)
	defer g.deadline.suspend(g.ResponseWriter)
	g.observed().setStatus(a.status())
	a.write(ungated{g})
	g.wroteHeader.Store(true)
	g.replaced.Store(true)
}

// ungated is the writer for an answer: that below the gate.
type ungated struct{ g *gate }

func (u ungated) Header() http.Header         { return u.g.ResponseWriter.Header() }
func (u ungated) WriteHeader(status int)      { u.g.ResponseWriter.WriteHeader(status) }
func (u ungated) Write(b []byte) (int, error) { return u.g.writeBody(b) }
