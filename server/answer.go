package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// answer is an error response: a [*Problem], or the [*page] that Options.WriteProblem has written in
// its place. Its header fields are in the header of the response already.
type answer interface {
	status() int
	write(w http.ResponseWriter)
}

// page is the writer that Options.WriteProblem gets. It keeps the response, because the properties
// are committed before anything is sent.
type page struct {
	header http.Header // of the response
	p      *Problem
	code   int // zero until something is written
	body   bytes.Buffer
}

// Header returns the header of the response.
func (pg *page) Header() http.Header { return pg.header }

// WriteHeader keeps the first status. It ignores informational ones, and panics if there is no such
// status.
func (pg *page) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("server: WriteHeader with status %d", status))
	case status >= 200 && pg.code == 0:
		pg.code = status
	}
}

// Write appends b to the body. The default status is that of the problem.
func (pg *page) Write(b []byte) (int, error) {
	if pg.code == 0 {
		pg.code = pg.p.status()
	}
	return pg.body.Write(b)
}

func (pg *page) status() int { return pg.code }

func (pg *page) write(w http.ResponseWriter) {
	w.WriteHeader(pg.code)
	_, _ = pg.body.WriteTo(w) // fails only if the client has gone away, or if the status has no body
}

// prepare returns the answer to r: p, unless Options.WriteProblem writes another.
func (g *gate) prepare(r *http.Request, p *Problem) answer {
	g.setProblemHeader(p)
	if g.x.srv.opts.WriteProblem == nil {
		return p
	}
	pg := &page{header: g.Header(), p: ProblemOf(p)}
	if !g.x.writing.CompareAndSwap(nil, pg.p) {
		return p // an error within WriteProblem, or beside it
	}
	problem.SetRetryAfter(pg.header, pg.p.Status, pg.p.Err)
	switch {
	case !g.x.writeProblem(pg, r):
		g.setProblemHeader(p)
		return p
	case pg.code == 0:
		g.setProblemHeader(pg.p)
		return pg.p
	}
	return pg
}

// writeProblem calls Options.WriteProblem, and reports whether it has returned. It logs a panic. After
// a panic or a [runtime.Goexit], WriteProblem is not called again for the request.
func (x *exchange) writeProblem(pg *page, r *http.Request) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			x.logPanic(v)
		}
	}()
	x.srv.opts.WriteProblem(pg, r, pg.p)
	x.writing.Store(nil)
	return true
}

// setProblemHeader replaces the fields that describe the handler's response by those of p.
func (g *gate) setProblemHeader(p *Problem) {
	clearRepresentation(g.Header())
	if g.nested != nil && len(g.nested.coding) > 0 {
		g.Header()["Content-Encoding"] = g.nested.coding
	}
	p.addHeader(g.Header())
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
