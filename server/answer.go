package server

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// answer is an error response: a [*Problem], or the [*page] of Options.WriteProblem. Its fields are already in the
// header.
type answer interface {
	status() int
	write(w http.ResponseWriter)
}

// prepare returns the answer to r: p, or the page of Options.WriteProblem. It replaces the header fields that
// describe the handler's response.
func (g *gate) prepare(r *http.Request, p *Problem) answer {
	g.clearRepresentation()
	h := g.Header()
	pg := g.beginPage(r, p)
	if pg == nil {
		p.addHeader(h)
		return p
	}
	before := h.Clone()
	pg.p.addHeader(h)
	problem.SetRetryAfter(h, pg.p.Status, pg.p.Err)
	if !g.x.writeProblem(pg) {
		clear(h)
		maps.Copy(h, before)
		p.addHeader(h)
		return p
	}
	if !pg.written() {
		g.clearRepresentation()
		pg.p.addHeader(h)
		return pg.p
	}
	return pg
}

// writeProblem calls Options.WriteProblem and reports whether it has returned. It logs a panic. After a panic or a
// [runtime.Goexit], WriteProblem is not called again for the request.
func (x *exchange) writeProblem(pg *page) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			x.logPanic(v)
		}
	}()
	x.srv.opts.WriteProblem(pg, pg.r, pg.p)
	pg.returned.Store(true)
	return true
}

// beginPage returns a page for WriteProblem. It returns nil if the option is not set, while WriteProblem writes another
// error, and after it has panicked.
func (g *gate) beginPage(r *http.Request, p *Problem) *page {
	before := g.x.page.Load()
	if g.x.srv.opts.WriteProblem == nil || before != nil && !before.returned.Load() {
		return nil
	}
	pg := &page{g: g, r: r, p: ProblemOf(p), of: p.status()}
	pg.given = pg.p
	if !g.x.page.CompareAndSwap(before, pg) {
		return nil
	}
	return pg
}

// clearRepresentation removes the fields that describe the handler's response. It keeps the Content-Encoding of a
// middleware.
func (g *gate) clearRepresentation() {
	clearRepresentation(g.Header())
	if g.nested != nil && len(g.nested.coding) > 0 {
		g.Header()["Content-Encoding"] = g.nested.coding
	}
}

// problem answers r with p and commits the properties: a denied request gets its rate-limit fields, a failed login
// its session.
func (g *gate) problem(r *http.Request, p *Problem) {
	a := g.prepare(r, p)
	if g.commit(a.status()) == nil {
		g.send(a)
	}
}

// fail sends p in place of the handler's response and commits nothing. Only these cookies are sent, because others
// would promise changes that were not made.
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
	defer g.deadline.suspend(g.ResponseWriter) // an answer without a body writes nothing after its header
	g.observed().setStatus(a.status())
	a.write(ungated{g})
	g.wroteHeader.Store(true)
	g.replaced.Store(true)
}

// ungated is a writer for answers. It writes to the writer below the gate.
type ungated struct{ g *gate }

func (u ungated) Header() http.Header         { return u.g.ResponseWriter.Header() }
func (u ungated) WriteHeader(status int)      { u.g.ResponseWriter.WriteHeader(status) }
func (u ungated) Write(b []byte) (int, error) { return u.g.writeBody(b) }

// page is the writer that Options.WriteProblem gets. It buffers the response, because the properties are committed
// before it is sent.
type page struct {
	g        *gate
	r        *http.Request
	p        *Problem // to send if nothing is written
	given    *Problem // the argument of WriteProblem
	of       int      // the status of the error
	code     int      // zero until something is written
	body     bytes.Buffer
	replaced bool        // by p, because WriteProblem has called WriteError
	returned atomic.Bool // WriteProblem has returned without a panic
}

// written reports whether WriteProblem has written the response.
func (pg *page) written() bool { return pg.code != 0 && !pg.replaced }

// sent returns the status of the response.
func (pg *page) sent() int {
	if pg.written() {
		return pg.code
	}
	return pg.p.status()
}

// statusOfError returns the status of the error if status is that of the page which answers it.
func (x *exchange) statusOfError(status int) int {
	if pg := x.page.Load(); pg != nil && pg.returned.Load() && pg.sent() == status {
		return pg.of
	}
	return status
}

// page returns the page that g writes to, or nil.
func (g *gate) page() *page {
	if pg := g.x.page.Load(); pg == nil || pg.returned.Load() {
		return nil
	}
	for w := g.ResponseWriter; ; {
		switch below := w.(type) {
		case *page:
			return below
		case interface{ Unwrap() http.ResponseWriter }:
			w = below.Unwrap()
		default:
			return nil
		}
	}
}

// Header returns the header of the response.
func (pg *page) Header() http.Header { return pg.g.Header() }

// WriteHeader keeps the first status that is not informational. It panics if the status is invalid.
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

// write sends pg with its length, which the client needs if the connection is closed after it.
func (pg *page) write(w http.ResponseWriter) {
	h := w.Header()
	if pg.code < 400 {
		delete(h, "Retry-After") // clients would wait before they follow a redirect
	}
	if pg.body.Len() > 0 || pg.r.Method != http.MethodHead {
		problem.SetLength(h, pg.code, pg.body.Len())
	}
	w.WriteHeader(pg.code)
	_, _ = pg.body.WriteTo(w) // fails only if the client has gone away, or if the status has no body
}
