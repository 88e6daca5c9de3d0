package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/reqctx"
)

// errReplaced is what a handler gets that writes on after its response was
// replaced by a problem.
var errReplaced = errors.New("server: the response was replaced by an error response")

// gate is the one way out for a response. Whatever way the header goes out
// (Write, WriteHeader, ReadFrom, Flush, Hijack, or the handler's return), it has
// the request's properties committed first; informational responses (1xx other
// than 101) pass. If that fails, the response is a problem instead, and what the
// handler writes is dropped.
//
// Like any [http.ResponseWriter] it is for one goroutine at a time. After the
// handler has returned it refuses everything.
type gate struct {
	http.ResponseWriter
	x           *exchange
	wroteHeader bool        // the final header is out, or the connection hijacked
	hijacked    bool        // the connection is the handler's
	replaced    bool        // the response is ours; the handler's writes are dropped
	over        atomic.Bool // the handler has returned
}

// WriteHeader sends the header.
func (g *gate) WriteHeader(status int) {
	switch {
	case g.over.Load():
		g.x.srv.log.Error("WriteHeader after the handler returned", "error", reqctx.ErrFinished)
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		g.ResponseWriter.WriteHeader(status)
	case g.replaced:
	case g.wroteHeader:
		g.x.srv.log.Warn("superfluous WriteHeader", "path", g.x.ctx.Request().URL.Path, "status", status)
	default:
		g.open(status, false)
	}
}

// Write sends the header with status 200 if it is not out yet, and then p.
func (g *gate) Write(p []byte) (int, error) {
	if err := g.ready(); err != nil {
		return 0, err
	}
	return g.ResponseWriter.Write(p)
}

// WriteString is Write for a string.
func (g *gate) WriteString(s string) (int, error) {
	if err := g.ready(); err != nil {
		return 0, err
	}
	return io.WriteString(g.ResponseWriter, s)
}

// ReadFrom is Write for what src has, as directly as the connection can (with
// sendfile, for a file).
func (g *gate) ReadFrom(src io.Reader) (int64, error) {
	if err := g.ready(); err != nil {
		return 0, err
	}
	if to, ok := g.ResponseWriter.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{g.ResponseWriter}, src)
}

// Flush sends what was written so far, and the header first.
func (g *gate) Flush() { _ = g.FlushError() }

// FlushError is Flush for [http.ResponseController].
func (g *gate) FlushError() error {
	if err := g.ready(); err != nil {
		return err
	}
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// Hijack commits and then hands over the connection. A cookie that a commit has
// set is in Header(), for a handler that writes the response itself.
func (g *gate) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if g.over.Load() {
		return nil, nil, reqctx.ErrFinished
	}
	if g.hijacked || g.replaced || g.wroteHeader {
		return nil, nil, http.ErrHijacked
	}
	if err := g.commit(); err != nil {
		return nil, nil, err
	}
	conn, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	if err == nil {
		g.hijacked, g.wroteHeader = true, true
	}
	return conn, rw, err
}

// Unwrap lets [http.ResponseController] set deadlines.
func (g *gate) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// ready makes sure that the header is out and that the body is the handler's.
func (g *gate) ready() error {
	if g.over.Load() {
		return reqctx.ErrFinished
	}
	if g.hijacked {
		return http.ErrHijacked
	}
	if !g.wroteHeader {
		g.open(http.StatusOK, false)
	}
	if g.replaced {
		return errReplaced
	}
	return nil
}

// open commits and sends the header. implicit leaves the sending to net/http,
// which knows that there is no body.
func (g *gate) open(status int, implicit bool) {
	if p := g.unrouted(status); p != nil {
		g.problem(p)
		return
	}
	if err := g.commit(); err != nil {
		g.x.logFailure(err, "response replaced: a property could not be committed")
		g.fail(commitProblem(err))
		return
	}
	g.wroteHeader = true
	if !implicit {
		g.ResponseWriter.WriteHeader(status)
	}
}

// commit runs the properties' Commit functions, once.
func (g *gate) commit() error {
	first := !g.x.ctx.Committed()
	err := g.x.ctx.Commit(g.Header())
	if first && err == nil && g.x.srv.opts.ServerTiming {
		addServerTiming(g.Header(), &g.x.ctx)
	}
	return err
}

// unrouted makes a problem of the plain text with which the mux says that it has
// no handler.
func (g *gate) unrouted(status int) *Problem {
	if g.x.ctx.Request().Pattern != "" || status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return nil
	}
	return &Problem{Status: status}
}

// problem answers with p, and has the properties committed: a denied request
// still gets its rate-limit fields, a failed login its session.
func (g *gate) problem(p *Problem) {
	clearRepresentation(g.Header())
	if err := g.commit(); err != nil {
		g.x.logFailure(err, "response replaced: a property could not be committed")
		g.fail(commitProblem(err))
		return
	}
	g.send(p)
}

// fail answers with p when nothing was committed: no cookie may promise it.
func (g *gate) fail(p *Problem) {
	clearRepresentation(g.Header())
	g.Header().Del("Set-Cookie")
	g.send(p)
}

func (g *gate) send(p *Problem) {
	g.wroteHeader, g.replaced = true, true
	p.write(g.ResponseWriter)
}
