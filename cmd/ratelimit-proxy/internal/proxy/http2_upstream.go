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

// RoundTrip bounds the number of attempts over HTTP/2 and their total time, without the time to wait for a connection. For a
// request with a body, [requestBody.watchUpstream] bounds the time, and net/http does not repeat the request once it has
// sent a part. Attempts over HTTP/1 are not bounded: net/http repeats them only until it has no idle connection left.
func (t http2Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // it ends with r's context
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
