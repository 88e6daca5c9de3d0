package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// logEvery is how often a line is logged at most that clients or a server decide about.
const logEvery = 10 * time.Second

// outage logs that a server doesn't answer, and why; that it answers again; and in between
// how many requests have met which outcome. Each is logged at most once in logEvery.
type outage struct {
	log        *slog.Logger // tells which server it is
	lost, back string       // what is logged
	affected   string

	failing atomic.Bool // the last call failed

	mu       sync.Mutex
	since    time.Time // of the first failure after a success
	cause    error     // of the last failure
	reported time.Time // when a loss was logged
	open     bool      // it is to be logged that the server is back
	outcomes map[string]int64
	summary  *time.Timer // of the outcomes, nil if there are none
	closed   bool
}

// fail notes that a call has failed.
func (o *outage) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cause = err
	now := time.Now()
	if !o.failing.Swap(true) {
		o.since = now
	}
	if o.open || !o.reported.IsZero() && now.Sub(o.reported) < logEvery {
		return
	}
	o.open, o.reported = true, now
	o.log.Error(o.lost, slog.String("error", err.Error()))
}

// succeed notes that a call has succeeded.
func (o *outage) succeed() {
	if !o.failing.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.failing.Swap(false) || !o.open {
		return
	}
	o.open = false
	o.log.Warn(o.back, append([]any{slog.Duration("after", time.Since(o.since))}, o.taken()...)...)
}

// count counts a request by what became of it.
func (o *outage) count(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.outcomes == nil {
		o.outcomes = map[string]int64{}
	}
	o.outcomes[outcome]++
	if o.summary == nil && !o.closed {
		o.summary = time.AfterFunc(logEvery, o.summarize)
	}
}

func (o *outage) summarize() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.summary == nil { // it was told with the return
		return
	}
	attrs := o.taken()
	if o.cause != nil {
		attrs = append(attrs, slog.String("error", o.cause.Error()))
	}
	o.log.Warn(o.affected, attrs...)
}

// taken returns the outcomes since the last summary.
func (o *outage) taken() (attrs []any) {
	for _, name := range slices.Sorted(maps.Keys(o.outcomes)) {
		attrs = append(attrs, slog.Int64(name, o.outcomes[name]))
	}
	clear(o.outcomes)
	if o.summary != nil {
		o.summary.Stop()
		o.summary = nil
	}
	return attrs
}

// close logs what is left.
func (o *outage) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.summarize()
}

// seldom logs a line at most once in a time, and how many it has left out since the last.
type seldom struct {
	every time.Duration // 0 is logEvery

	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (s *seldom) log(l *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() || now.Sub(s.last) >= cmp.Or(s.every, logEvery) {
		if s.skipped > 0 {
			attrs = append(attrs, slog.Int("left_out", s.skipped))
		}
		s.last, s.skipped = now, 0
		l.LogAttrs(context.Background(), level, message, attrs...)
		return
	}
	s.skipped++
}

// atDebug makes debug lines of all that is logged.
type atDebug struct{ slog.Handler }

// Enabled is for slog.
func (h atDebug) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle is for slog.
func (h atDebug) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}
