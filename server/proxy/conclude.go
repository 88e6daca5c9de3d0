package proxy

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/server"
)

// conclude answers a request that came to an error, if that would be logged for each
// request. A failure of the store or of an upstream is logged as an [outage]; what the proxy
// doesn't do, clients ask for.
func (x *exchange) conclude(err error) error {
	if _, denied := err.(*ratelimit.DeniedError); denied || err == nil { // as it is mostly
		return err
	}
	var p *server.Problem
	if errors.As(err, &p) {
		switch p.Status {
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			if x.up == nil || x.err == nil { // it wasn't an upstream
				return err
			}
			x.up.outage.fail(x.err)
			x.up.outage.count(strconv.Itoa(p.Status))
		case http.StatusNotImplemented, http.StatusLoopDetected:
		default:
			return err
		}
		return quietly(x.p.log, x.w, x.req, p.Status, map[string]any{"detail": p.Detail}, err)
	}
	return unchecked(x.p.log, x.w, x.req, err)
}

// unchecked answers a request whose limits can't be checked. Other errors it returns.
func unchecked(log *slog.Logger, w http.ResponseWriter, req *server.Request, err error) error {
	var unavailable *layer.UnavailableError
	if !errors.As(err, &unavailable) {
		return err
	}
	status, members := unavailable.Problem()
	return quietly(log, w, req, status, members, err)
}

// quietly answers with a problem, which package server would log as an error.
func quietly(log *slog.Logger, w http.ResponseWriter, req *server.Request, status int, members map[string]any, err error) error {
	r := req.Request
	log.DebugContext(r.Context(), "request failed",
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	problem.Write(w, status, members, err)
	return nil
}
