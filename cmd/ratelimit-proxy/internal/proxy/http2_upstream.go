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

// maxRefusals is how often an upstream may refuse a request over HTTP/2 before the proxy gives up. If an upstream
// allows few streams, it refuses some requests of a burst several times.
const maxRefusals = 20

var (
	errRefused = fmt.Errorf("the upstream has refused a request %d times", maxRefusals)
	errSilent  = fmt.Errorf("the upstream doesn't answer: %w", context.DeadlineExceeded)
)

// http2Transport is the transport for an upstream that may use HTTP/2. net/http repeats a request without a body as
// often as the upstream refuses it, and applies its timeout to each attempt.
type http2Transport struct{ *http.Transport }

// RoundTrip bounds the number of attempts over HTTP/2 and their total time. The time that a request waits for a
// connection does not count. For a request with a body, [requestBody.watchUpstream] bounds the time. RoundTrip does
// not bound attempts over HTTP/1, because net/http repeats a request only until it has no idle connection left.
func (t http2Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // ends with r's context
	attempts := 0
	var timer *time.Timer // nil before the first attempt, and for a request with a body
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { // called in this goroutine, before an attempt is written
			if conn, ok := got.Conn.(*tls.Conn); ok && conn.ConnectionState().NegotiatedProtocol != "h2" {
				return
			}
			if timer == nil && (r.Body == nil || r.Body == http.NoBody) {
				timer = time.AfterFunc(t.ResponseHeaderTimeout, func() { cancel(errSilent) })
			}
			if attempts++; attempts > maxRefusals {
				cancel(errRefused)
			}
		},
	})
	res, err := t.Transport.RoundTrip(r.WithContext(traced))
	late := timer != nil && !timer.Stop()
	switch {
	case err == nil && late:
		return nil, errors.Join(errSilent, res.Body.Close())
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return res, err
}
