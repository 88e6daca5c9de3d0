package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// accessLog is a server.Observer that logs one line for each request when its handler has
// returned: for a stream or a websocket that is its end. It is safe for concurrent use, as slog
// is. A log that can block belongs behind a buffer.
type accessLog struct {
	log    *slog.Logger
	secret []byte // for hashes of keys
}

// newAccessLog returns a log whose hashes of keys are the same for this process only. Processes
// that share a secret have the same hashes.
func newAccessLog(log *slog.Logger) *accessLog {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return &accessLog{log, secret}
}

// RequestEnd implements server.Observer. The line has the route and not the path, and no texts of
// errors, as these may contain personal data; the server logs why a request has failed.
func (a *accessLog) RequestEnd(ctx context.Context, info server.RequestInfo) {
	properties, failed := resolved(ctx)
	attrs := []slog.Attr{
		slog.String("method", methodOf(info.Request)),
		slog.String("route", info.Pattern),
		slog.Int("status", info.Status),
		slog.Int64("bytes", info.Written),
		slog.Float64("ms", millis(info.Took)),
		slog.String("end", endOf(ctx, &info)),
		{Key: "properties", Value: slog.GroupValue(properties...)},
	}
	if len(failed) > 0 {
		attrs = append(attrs, slog.Any("failed", failed))
	}
	if limits := a.limits(ctx); len(limits) > 0 {
		attrs = append(attrs, slog.Attr{Key: "limits", Value: slog.GroupValue(limits...)})
	}
	// The request's end is logged even if its context has ended.
	a.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "request", attrs...)
}

// methodOf returns the method, unless a client has invented it.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY":
		return r.Method
	default:
		return "other"
	}
}

// endOf returns how a request ended, as its status alone does not show it.
func endOf(ctx context.Context, info *server.RequestInfo) string {
	var panicked *lazy.PanicError
	switch {
	case errors.As(info.Err, &panicked), errors.Is(info.Err, lazy.ErrGoexit):
		return "panic"
	case ctx.Err() != nil:
		return "canceled" // the client has gone, or the server shuts down
	case info.CutOff:
		return "cut off" // also before its header
	case info.Status == 0 || info.Status == http.StatusSwitchingProtocols:
		return "hijacked"
	default:
		return "complete"
	}
}

// resolved returns the properties that the request has resolved, with the milliseconds that each
// took, and the names of those that have failed.
func resolved(ctx context.Context) (all []slog.Attr, failed []string) {
	for name, p := range reqctx.From(ctx).Props() {
		if p.State != reqctx.Resolved && p.State != reqctx.Failed {
			continue
		}
		all = append(all, slog.Float64(name, millis(p.Took)))
		if p.State == reqctx.Failed {
			failed = append(failed, name)
		}
	}
	return all, failed
}

// limits returns, for each policy that has charged the request, the hash of what it counts by, and
// whether it let the request through.
func (a *accessLog) limits(ctx context.Context) (all []slog.Attr) {
	allowed, policies := map[*ratelimit.Policy]bool{}, []*ratelimit.Policy(nil)
	for d := range ratelimit.Decisions(ctx) { // one for each rule
		before, seen := allowed[d.Of]
		if !seen {
			policies = append(policies, d.Of)
		}
		allowed[d.Of] = d.Result.Allowed && (before || !seen)
	}
	for _, policy := range policies {
		attrs := []any{slog.Bool("allowed", allowed[policy])}
		if subject, err := policy.Subject(ctx); err == nil {
			attrs = append(attrs, slog.String("key", a.hash(subject)))
		}
		all = append(all, slog.Group(policy.Name, attrs...))
	}
	return all
}

// hash returns what stands for a key. It has a secret, as there are few enough addresses to try
// them all.
func (a *accessLog) hash(key string) string {
	h := hmac.New(sha256.New, a.secret)
	_, _ = h.Write([]byte(key))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
