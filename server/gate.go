package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
)

// errReplaced is what a handler gets that writes on after its response was replaced by a
// problem, or cut off.
var errReplaced = errors.New("server: the response was replaced by an error response or cut off")

// gate is the only way out for a response. Whatever sends the header (Write, WriteHeader,
// ReadFrom, Flush, Hijack, or the handler's return), the gate first commits the request's
// properties; informational responses (1xx other than 101) pass. If a commit fails, the
// response is a problem instead, and what the handler writes is dropped.
//
// Like any [http.ResponseWriter] it is for one goroutine at a time. After the handler has
// returned it refuses everything. It is no [http.Pusher], as clients refuse pushes; Unwrap
// leads to the writer below.
type gate struct {
	http.ResponseWriter
	x           *exchange
	deadline    writeDeadline
	closeNotify chan bool   // made by the first CloseNotify
	nested      *nesting    // nil for the exchange's own gate
	routed      bool        // what is written is a handler's or a middleware's, not the mux's own
	hijacked    bool        // the connection is the handler's
	wroteHeader atomic.Bool // the final header is out, or the connection hijacked
	replaced    atomic.Bool // the response is not the handler's: its writes are dropped
	closed      atomic.Bool // the handler has returned
}

// nesting is what a gate on a writer between the exchange's own gate and a handler has besides.
type nesting struct {
	coding []string // the Content-Encoding that a middleware has set, which encodes what it is given
}

// Header returns the header to send. Once the handler has returned, net/http reads that one,
// and a goroutine that is late gets a map of its own instead of a race.
func (g *gate) Header() http.Header {
	if g.closed.Load() {
		return http.Header{}
	}
	return g.ResponseWriter.Header()
}

// WriteHeader sends the header. It panics, with nothing committed, if there is no such
// status.
func (g *gate) WriteHeader(status int) {
	switch {
	case g.closed.Load():
		g.x.srv.log.Error("WriteHeader after the handler returned", "error", reqctx.ErrFinished)
	case g.replaced.Load():
	case g.wroteHeader.Load():
		r := g.x.host.Request()
		g.x.srv.log.Warn("WriteHeader was called twice; the first status stays", "method", r.Method, "path", r.URL.Path, "ignored", status)
	case status < 100 || status > 999:
		panic(fmt.Sprintf("server: WriteHeader with status %d", status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		g.deadline.extend(g.ResponseWriter)
		g.ResponseWriter.WriteHeader(status)
		g.deadline.suspend(g.ResponseWriter)
	default:
		g.open(status, false)
	}
}

// Write sends the header with status 200 if it is not out yet, and then p.
func (g *gate) Write(p []byte) (int, error) {
	if err := g.ensureOpen(); err != nil {
		return 0, err
	}
	return g.writeBody(p)
}

// writeBody writes and counts a part of the body.
func (g *gate) writeBody(p []byte) (int, error) {
	n, err := g.deadline.write(g.ResponseWriter, p)
	g.observed().addWritten(int64(n))
	return n, err
}

// WriteString is Write for a string.
func (g *gate) WriteString(s string) (int, error) {
	if len(s) > piece {
		return g.Write([]byte(s))
	}
	if err := g.ensureOpen(); err != nil {
		return 0, err
	}
	g.deadline.extend(g.ResponseWriter)
	defer g.deadline.suspend(g.ResponseWriter)
	n, err := io.WriteString(g.ResponseWriter, s)
	g.observed().addWritten(int64(n))
	return n, err
}

// ReadFrom is Write for the content of src, as directly as the connection can: with sendfile,
// if src is a file.
func (g *gate) ReadFrom(src io.Reader) (int64, error) {
	if err := g.ensureOpen(); err != nil {
		return 0, err
	}
	if to, ok := g.ResponseWriter.(io.ReaderFrom); ok {
		n, err := g.deadline.readFrom(g.ResponseWriter, to, src)
		g.observed().addWritten(n)
		return n, err
	}
	return io.Copy(struct{ io.Writer }{g}, src)
}

// Flush sends what was written so far, and the header first.
func (g *gate) Flush() { _ = g.FlushError() }

// FlushError is Flush for [http.ResponseController].
func (g *gate) FlushError() error {
	if err := g.ensureOpen(); err != nil {
		return err
	}
	g.deadline.extend(g.ResponseWriter)
	defer g.deadline.suspend(g.ResponseWriter)
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// SetWriteDeadline is for [http.ResponseController]. From then on, the deadline is the
// handler's own and is left alone.
func (g *gate) SetWriteDeadline(t time.Time) error {
	g.deadline = writeDeadline{}
	return http.NewResponseController(g.ResponseWriter).SetWriteDeadline(t)
}

// Hijack commits, with status 101, and then hands over the connection, also after a header with
// that status. A cookie that a commit has set is in Header(), for a handler that
// writes the response itself.
func (g *gate) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	switch {
	case g.closed.Load():
		return nil, nil, reqctx.ErrFinished
	case g.hijacked:
		return nil, nil, http.ErrHijacked
	case g.replaced.Load():
		return nil, nil, errReplaced
	case !g.wroteHeader.Load():
		if err := g.commit(http.StatusSwitchingProtocols); err != nil {
			return nil, nil, err
		}
	}
	conn, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	if err == nil {
		g.hijacked = true
		g.wroteHeader.Store(true)
	}
	return conn, rw, err
}

// CloseNotify returns a channel that gets a value when the request's context ends. The
// interface is deprecated, but frameworks assert it on any writer: gin does, to stream.
func (g *gate) CloseNotify() <-chan bool {
	if g.closeNotify == nil {
		notify := make(chan bool, 1)
		context.AfterFunc(&g.x.host.Context, func() { notify <- true })
		g.closeNotify = notify
	}
	return g.closeNotify
}

// Unwrap lets [http.ResponseController] reach what the gate does not have itself.
func (g *gate) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// observed returns what to count the response in. Of a nested gate it is nil: its response
// passes the exchange's own.
func (g *gate) observed() *observation {
	if g.nested != nil {
		return nil
	}
	return g.x.seen
}

// ensureOpen makes sure that the header is out and that the body is the handler's.
func (g *gate) ensureOpen() error {
	if g.closed.Load() {
		return reqctx.ErrFinished
	}
	if g.hijacked {
		return http.ErrHijacked
	}
	if !g.wroteHeader.Load() {
		g.open(http.StatusOK, false)
	}
	if g.replaced.Load() {
		return errReplaced
	}
	return nil
}

// open commits and sends the header. implicit leaves the sending to net/http,
// which knows that there is no body.
func (g *gate) open(status int, implicit bool) {
	if g.replaced.Load() {
		return
	}
	if !g.routed && status >= 400 {
		g.problem(g.x.host.Request(), &Problem{Status: status}) // in place of the mux's plain text
		return
	}
	if g.commit(status) != nil {
		return
	}
	g.observed().setStatus(status)
	if status != http.StatusSwitchingProtocols {
		g.announceEnd()
	}
	if !implicit {
		g.ResponseWriter.WriteHeader(status)
	}
	g.wroteHeader.Store(true)
}

// announceEnd announces to the client that the connection ends if the server is shutting down.
func (g *gate) announceEnd() {
	if g.nested == nil && g.x.accepted && g.x.srv.http.Ending() {
		g.Header().Set("Connection", "close")
	}
}
