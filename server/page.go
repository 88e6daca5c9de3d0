package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// page is the writer that Options.WriteProblem gets. It keeps the response, because the properties
// are committed before anything is sent.
type page struct {
	g      *gate
	r      *http.Request
	p      *Problem // to send if nothing is written
	code   int      // zero until something is written
	body   bytes.Buffer
	failed bool // WriteError has replaced it by p
}

// Header returns the header of the response.
func (pg *page) Header() http.Header { return pg.g.Header() }

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

// fail is WriteError to pg: the problem of err replaces what was written.
func (pg *page) fail(err error) {
	if asProblem(err) != pg.p {
		pg.g.x.seen.fail(err)
		pg.p = ProblemOf(pg.g.x.problemFor(err))
	}
	pg.failed = true
}

func (pg *page) status() int { return pg.code }

// write sends pg. Its length is known to the client even if the connection is closed after it.
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

// page returns the page that g writes to, or nil.
func (g *gate) page() *page {
	if g.x.writing.Load() == nil {
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
