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

// errReplaced is the error of writes after the handler's response was replaced by a problem or cut off.
var errReplaced = errors.New("server: the response was replaced by an error response or cut off")

// gate is the only way to send a response. Write, WriteHeader, ReadFrom, Flush, Hijack and the handler's return all
// send the header. Before that, the gate commits the request's properties. Informational responses (1xx except 101)
// pass without a commit. If a commit fails, the response is a problem, and the handler's writes are dropped.
//
// Like any [http.ResponseWriter], a gate must not be used concurrently. After the handler has returned, it refuses
// everything. It does not implement [http.Pusher], because clients refuse pushes. Unwrap returns the writer below.
type gate struct {
	http.ResponseWriter
	x           *exchange
	deadline    writeDeadline
	closeNotify chan bool   // set by the first CloseNotify
	nested      *nesting    // nil for the outermost gate
	routed      bool        // the mux has passed the request to a handler
	hijacked    bool        // the connection is the handler's
	wroteHeader atomic.Bool // the final header was sent, or the connection hijacked
	replaced    atomic.Bool // another response has replaced the handler's, whose writes are dropped
	closed      atomic.Bool // the handler has returned
}

// nesting is the additional state of a gate between the exchange's own gate and a handler.
type nesting struct {
	coding []string // the Content-Encoding of a middleware that encodes the gate's output
}

// Header returns the header of the response. After the handler has returned, net/http reads it, so late goroutines
// get an unused one.
func (g *gate) Header() http.Header {
	if g.closed.Load() {
		return http.Header{}
	}
	return g.ResponseWriter.Header()
}

// WriteHeader sends the header. If the status is invalid, it panics and commits nothing.
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

// Write sends the header with status 200 if it was not sent, and then p.
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

// ReadFrom writes the content of src. A file is sent with sendfile if the connection can.
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

// Flush sends the header and all data written so far.
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

// SetWriteDeadline is for [http.ResponseController]. It ends the server's own deadlines of the response.
func (g *gate) SetWriteDeadline(t time.Time) error {
	g.deadline = writeDeadline{}
	return http.NewResponseController(g.ResponseWriter).SetWriteDeadline(t)
}

// Hijack commits with status 101 and returns the connection. It also works after a header with that status. Cookies
// of the commit are in Header(), for handlers that write the response themselves.
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

// CloseNotify returns a channel that gets a value when the request's context ends. It is deprecated, but frameworks
// such as gin expect it of every writer.
func (g *gate) CloseNotify() <-chan bool {
	if g.closeNotify == nil {
		notify := make(chan bool, 1)
		context.AfterFunc(&g.x.host.Context, func() { notify <- true })
		g.closeNotify = notify
	}
	return g.closeNotify
}

// Unwrap gives [http.ResponseController] the methods that the gate lacks.
func (g *gate) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// observed returns the observation that counts the response. For a nested gate it returns nil, because the outer
// gate counts the same output.
func (g *gate) observed() *observation {
	if g.nested != nil {
		return nil
	}
	return g.x.seen
}

// ensureOpen sends the header if necessary. It returns an error if the handler may not write to the body.
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

// open commits and sends the header. If implicit is set, net/http sends the header itself, because it then knows
// that there is no body.
func (g *gate) open(status int, implicit bool) {
	if g.replaced.Load() {
		return
	}
	if !g.routed && status >= 400 {
		g.problem(g.x.host.Request(), &Problem{Status: status}) // replaces the mux's plain text
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

// announceEnd tells the client that the connection is going to end, if the server is shutting down.
func (g *gate) announceEnd() {
	if g.nested == nil && g.x.accepted && g.x.srv.http.Ending() {
		g.Header().Set("Connection", "close")
	}
}
