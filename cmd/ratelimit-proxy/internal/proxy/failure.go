package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/server"
)

// upstreamError returns the error with which the client is answered if the upstream has not responded.
func (f *forwarding) upstreamError() error {
	r := f.req.Request
	f.writeStatus()
	cancelled := r.Context().Err() != nil && isCancelled(f.err)
	if status := f.body.errorStatus(cancelled); status != 0 {
		return &server.Problem{Status: status, Detail: "The body could not be read to its end.", Err: f.err}
	}
	if cancelled {
		panic(http.ErrAbortHandler) // the client has left, or the proxy stops
	}
	if strings.Contains(f.err.Error(), "request header list larger than peer's advertised limit") { // net/http has no type for this error
		return &server.Problem{Status: http.StatusRequestHeaderFieldsTooLarge, Detail: "The header is too large for the server behind this proxy.", Err: f.err}
	}
	status, detail := http.StatusBadGateway, "The server behind this proxy could not be reached."
	var timeout net.Error
	if errors.Is(f.err, context.DeadlineExceeded) || errors.As(f.err, &timeout) && timeout.Timeout() {
		status, detail = http.StatusGatewayTimeout, "The server behind this proxy took too long."
	}
	f.p.metrics.countUpstreamFailure(f.up.name, strconv.Itoa(status))
	return &server.Problem{Status: status, Detail: detail, Err: fmt.Errorf("upstream %s: %w", f.up.name, f.err)}
}

// isCancelled reports whether err was caused by a client that has left, or by the stop of the proxy.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errStopped)
}

// answerError answers errors that package server would log once for each request, and returns other errors. Failures
// of Redis and of upstreams are logged as an [outage] instead. Requests that the proxy doesn't support are not
// logged, because clients could fill the log with them.
func (f *forwarding) answerError(err error) error {
	if _, denied := err.(*ratelimit.DeniedError); denied || err == nil { // most requests
		return err
	}
	var p *server.Problem
	if !errors.As(err, &p) {
		return answerUnavailable(f.p.log, f.w, f.req, err)
	}
	switch p.Status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		if f.err == nil { // the error is not from the upstream
			return err
		}
		f.up.outage.callFailed(f.err)
	case http.StatusNotImplemented, http.StatusLoopDetected:
	default:
		return err
	}
	answerQuietly(f.p.log, f.w, f.req, p.Status, map[string]any{"detail": p.Detail}, err)
	return nil
}

// answerUnavailable answers an [*layer.UnavailableError], which means that the limits can't be checked. It returns
// other errors.
func answerUnavailable(log *slog.Logger, w http.ResponseWriter, req *server.Request, err error) error {
	var unavailable *layer.UnavailableError
	if !errors.As(err, &unavailable) {
		return err
	}
	status, members := unavailable.Problem()
	answerQuietly(log, w, req, status, members, err)
	return nil
}

// answerQuietly sends a problem response and logs the error at level debug.
func answerQuietly(log *slog.Logger, w http.ResponseWriter, req *server.Request, status int, members map[string]any, err error) {
	log.DebugContext(req.Context(), "request failed",
		slog.String("method", req.Method), slog.String("path", req.URL.Path), slog.String("error", err.Error()))
	problem.Write(w, status, members, err)
}
