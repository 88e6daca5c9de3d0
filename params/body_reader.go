package params

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// A bodyReader is a request's body as the client sends it: counted, timed, and kept if
// it is to be read again. It reads no more than its limit and one byte.
type bodyReader struct {
	ctx   context.Context
	body  io.Reader
	limit int64
	n     int64
	until time.Time // zero: no limit of time
	keep  bool
	kept  []byte
	err   error      // what ended it
	back  replayBody // to be read again
}

// errSlow is why a body that came too slowly was not read on.
var errSlow = fmt.Errorf("params: the time to read the body is over: %w", os.ErrDeadlineExceeded)

// newBodyReader returns a bodyReader that reads body, which is r's, from now on.
func newBodyReader(ctx context.Context, r *http.Request, body io.Reader, o *Options, limit int64) *bodyReader {
	w := &bodyReader{ctx: ctx, body: body, limit: limit}
	if o.ReadTimeout <= 0 {
		return w
	}
	w.until = time.Now().Add(o.ReadTimeout)
	if shared, ok := r.Body.(*sharedBody); ok && !serverIsStricter(ctx, o.ReadTimeout) {
		shared.deadline(w.until) // net/http takes it away when the body has ended
	}
	return w
}

// serverIsStricter says whether the server's own deadline for the request, whose
// time began earlier, comes before one in d. It isn't to be moved then.
func serverIsStricter(ctx context.Context, d time.Duration) bool {
	s, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	return s != nil && s.ReadTimeout > 0 && s.ReadTimeout <= d
}

func (w *bodyReader) Read(p []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.ctx.Err() != nil:
		w.err = fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(w.ctx))
		return 0, w.err
	}
	if room := w.limit - w.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := w.body.Read(p)
	w.n += int64(n)
	if w.keep {
		w.kept = append(w.kept, p[:n]...)
	}
	switch {
	case w.n > w.limit:
		w.err = &http.MaxBytesError{Limit: w.limit}
	case err != nil:
		w.err = err
	case !w.until.IsZero() && time.Now().After(w.until):
		w.err = errSlow
	}
	return n, w.err
}
