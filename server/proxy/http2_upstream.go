package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
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

// RoundTrip bounds the attempts, and their time. The time of a request with a body is bounded by
// [requestBody.watchUpstream]: such a request is not repeated once a part of the body was sent.
func (t http2Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // which ends with the exchange
	inTime := func() bool { return true }
	if r.Body == nil || r.Body == http.NoBody {
		inTime = time.AfterFunc(t.ResponseHeaderTimeout, func() { cancel(errSilent) }).Stop
	}
	var sent atomic.Int64
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() {
		if sent.Add(1) > maxRefusals {
			cancel(errRefused)
		}
	}})
	res, err := t.Transport.RoundTrip(r.WithContext(traced))
	late := !inTime()
	switch {
	case err == nil && late:
		return nil, errors.Join(errSilent, res.Body.Close())
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return res, err
}
