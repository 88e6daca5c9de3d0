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

// accessLog is a server.Observer. It logs one line for each request when the request's handler has returned, which
// for a stream or a websocket is at its end. It is safe for concurrent use. If writing the log can block, put a
// buffer in front of it.
type accessLog struct {
	log    *slog.Logger
	secret []byte // key of the HMAC for limit keys
}

// newAccessLog returns an accessLog with a random secret. Different processes therefore log different hashes of the
// same key. They would log the same hashes if they shared a secret.
func newAccessLog(log *slog.Logger) *accessLog {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return &accessLog{log, secret}
}

// RequestEnd implements server.Observer. The line contains the route instead of the path, and no error texts, because
// these may contain personal data. The server itself logs why a request has failed.
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
	// The line is logged even if the request's context has ended.
	a.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "request", attrs...)
}

// methodOf returns the method of a request, or another text if it is not a standard method.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY":
		return r.Method
	default:
		return "other"
	}
}

// endOf returns how a request ended. The status alone does not show this.
func endOf(ctx context.Context, info *server.RequestInfo) string {
	var panicked *lazy.PanicError
	switch {
	case errors.As(info.Err, &panicked), errors.Is(info.Err, lazy.ErrGoexit):
		return "panic"
	case ctx.Err() != nil:
		return "canceled" // the client has left, or the server shuts down
	case info.CutOff:
		return "cut off" // the response may have no header
	case info.Status == 0 || info.Status == http.StatusSwitchingProtocols:
		return "hijacked"
	default:
		return "complete"
	}
}

// resolved returns the properties that the request has resolved, with the duration of each in milliseconds, and the
// names of the properties that have failed.
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

// limits returns an attribute for each policy that has charged the request: the hash of its key, and whether it has
// allowed the request.
func (a *accessLog) limits(ctx context.Context) (all []slog.Attr) {
	allowed, policies := map[*ratelimit.Policy]bool{}, []*ratelimit.Policy(nil)
	for d := range ratelimit.Decisions(ctx) { // there is one decision for each rule
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

// hash returns a keyed hash of a limit's key. Without a secret, somebody could find the address behind a hash by
// trying all addresses.
func (a *accessLog) hash(key string) string {
	h := hmac.New(sha256.New, a.secret)
	_, _ = h.Write([]byte(key))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
