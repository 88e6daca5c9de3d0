package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
)

// AccessLog returns an observer that logs one line for each request when its handler has returned: the
// method, the route, the status, the bytes that were written of the body, and the milliseconds that it took. It logs the
// route and not the path, which may contain personal data. A nil log means [slog.Default].
//
//	srv, err := server.New(server.Options{Observers: []server.Observer{server.AccessLog(logger)}})
func AccessLog(log *slog.Logger) Observer { return &accessLog{log} }

type accessLog struct{ log *slog.Logger }

var knownMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY"}

// RequestEnd implements [Observer].
func (a *accessLog) RequestEnd(ctx context.Context, info RequestInfo) {
	method := info.Request.Method
	if !slices.Contains(knownMethods, method) {
		method = "other" // a client may send any text
	}
	cmp.Or(a.log, slog.Default()).LogAttrs(ctx, slog.LevelInfo, "request",
		slog.String("method", method), slog.String("route", info.Pattern), slog.Int("status", info.Status),
		slog.Int64("bytes", info.Written), slog.Float64("ms", float64(info.Took.Microseconds())/1000))
}
