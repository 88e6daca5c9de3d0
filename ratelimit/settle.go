package ratelimit

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// settle refunds the charge if the policy's Settle returns false for the status, and then writes the header. The charge
// stays if the status may not be the client's answer, because the client has left or the connection is hijacked. A panic
// of Settle and a failure of the refund are logged, and do not change the response.
func settle(ctx context.Context, c *charge, status int, h http.Header) error {
	if c.hasReceipt() && status != http.StatusSwitchingProtocols && ctx.Err() == nil {
		lazy.Guard(c.policy.Name+".Settle", func() error {
			if c.policy.Settle(status) {
				return nil
			}
			_, err := c.refund(ctx)
			return err
		}, func(err error, _ *lazy.PanicError) {
			if err != nil {
				reqctx.From(ctx).Logger().ErrorContext(ctx, "rate limit not settled: the charge stays", slog.Any("error", err))
			}
		})
	}
	return writeHeader(ctx, c, status, h)
}

// hasReceipt reports whether the store has charged the request. It has not if the request was denied, if its key is on an
// allow list, or if a failover has answered.
func (c *charge) hasReceipt() bool {
	made := func(r Result) bool { return r.Receipt.N > 0 }
	return made(c.res) || slices.ContainsFunc(c.res.Each(), made)
}

// settlingWriter is the writer of a handler in a middleware whose policy has Settle. It commits the request when the
// header goes out. Unwrap gives [http.ResponseController] the methods that do not send the header.
type settlingWriter struct {
	http.ResponseWriter
	host      *reqctx.Host
	committed bool
}

func (w *settlingWriter) commit(status int) {
	if !w.committed {
		w.committed = true
		_ = w.host.Commit(status, w.Header()) // settle returns no error
	}
}

func (w *settlingWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.commit(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *settlingWriter) Write(p []byte) (int, error) {
	w.commit(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *settlingWriter) Flush() { _ = w.FlushError() }

func (w *settlingWriter) FlushError() error {
	w.commit(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *settlingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.commit(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// CloseNotify is deprecated, but gin expects it of every writer.
func (w *settlingWriter) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(&w.host.Context, func() { gone <- true })
	return gone
}

func (w *settlingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
