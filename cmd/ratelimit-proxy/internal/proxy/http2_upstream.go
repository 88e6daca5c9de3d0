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

// maxRefusals is how often an upstream may refuse a request over HTTP/2. One that allows
// few streams refuses some requests of a burst several times.
const maxRefusals = 20

var (
	errRefused = fmt.Errorf("the upstream has refused a request %d times", maxRefusals)
	errSilent  = fmt.Errorf("the upstream doesn't answer: %w", context.DeadlineExceeded)
)

// http2Transport is the transport of an upstream that may use HTTP/2. net/http repeats a request without a
// body as often as the upstream refuses it, and has a timeout for each attempt only.
type http2Transport struct{ *http.Transport }

// RoundTrip bounds the attempts over HTTP/2, and their time. The time of a request with a body is bounded by
// [requestBody.watchUpstream]: such a request is not repeated once a part of the body was sent.
func (t http2Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // which ends with the exchange
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

// attempts bounds the attempts of a request over HTTP/2. Waiting for a connection does not count, and neither do
// attempts over HTTP/1: net/http repeats those only until it has no idle connection left. net/http calls
// gotConn in the goroutine of RoundTrip.
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
