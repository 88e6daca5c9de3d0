package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"
)

// maxRefusals is the number of times that an upstream may refuse a request over HTTP/2. An upstream that allows few
// streams refuses some requests of a burst several times.
const maxRefusals = 20

var (
	errRefused = fmt.Errorf("the upstream has refused a request %d times", maxRefusals)
	errSilent  = fmt.Errorf("the upstream doesn't answer: %w", context.DeadlineExceeded)
)

// http2Transport is the transport of an upstream that may use HTTP/2. net/http repeats a request without a body as often
// as the upstream refuses it, and its timeout is for each attempt.
type http2Transport struct{ *http.Transport }

// RoundTrip bounds the number of attempts over HTTP/2 and their total time. For a request with a body,
// [requestBody.watchUpstream] bounds the time, and net/http does not repeat the request once it has sent a part.
func (t http2Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // it ends with r's context
	a := &attempts{cleartext: t.Protocols.UnencryptedHTTP2(), cancel: cancel}
	if r.Body == nil || r.Body == http.NoBody {
		a.timeout = t.ResponseHeaderTimeout
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: a.gotConn})
	res, err := t.Transport.RoundTrip(r.WithContext(traced))
	late := a.timer != nil && !a.timer.Stop()
	switch {
	case err == nil && late:
		return nil, errors.Join(errSilent, res.Body.Close())
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return res, err
}

// attempts bounds the attempts of a request over HTTP/2. The time to wait for a connection does not count. Attempts over
// HTTP/1 do not count either, since net/http repeats them only until it has no idle connection left. net/http calls gotConn
// in the goroutine of RoundTrip.
type attempts struct {
	cleartext bool          // the upstream has HTTP/2 without TLS
	timeout   time.Duration // 0 for no bound
	cancel    context.CancelCauseFunc

	sent  int
	timer *time.Timer // nil before the first attempt
}

// gotConn is called before an attempt is written.
func (a *attempts) gotConn(got httptrace.GotConnInfo) {
	if conn, ok := got.Conn.(*tls.Conn); !a.cleartext && !(ok && conn.ConnectionState().NegotiatedProtocol == "h2") {
		return
	}
	if a.timer == nil && a.timeout > 0 {
		a.timer = time.AfterFunc(a.timeout, func() { a.cancel(errSilent) })
	}
	if a.sent++; a.sent > maxRefusals {
		a.cancel(errRefused)
	}
}
