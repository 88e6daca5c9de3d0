package proxy

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// logEvery is the shortest time between log lines whose number clients or a server decide.
const logEvery = 10 * time.Second

// outage logs when a server doesn't answer, and why, when it answers again, and in between
// how many requests had which outcome. Each is logged at most once in logEvery.
type outage struct {
	log        *slog.Logger // names the server
	lost, back string       // the messages
	affected   string

	failing atomic.Bool // the last call failed

	mu       sync.Mutex
	since    time.Time // of the first failure after a success
	cause    error     // of the last failure
	reported time.Time // when the latest loss was logged
	open     bool      // a loss was logged, and not yet its end
	outcomes map[string]int64
	summary  *time.Timer // of the outcomes, nil if there are none
	closed   bool
}

// callFailed reports a call that has failed.
func (o *outage) callFailed(err error) {
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

// callSucceeded reports a call that has succeeded.
func (o *outage) callSucceeded() {
	if !o.failing.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.failing.Swap(false) || !o.open {
		return
	}
	o.open = false
	o.log.Warn(o.back, append([]any{slog.Duration("after", time.Since(o.since))}, o.takeOutcomes()...)...)
}

// countOutcome counts the outcome of a request.
func (o *outage) countOutcome(outcome string) {
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
	if o.summary == nil { // the end of the outage was logged with them
		return
	}
	attrs := o.takeOutcomes()
	if o.cause != nil {
		attrs = append(attrs, slog.String("error", o.cause.Error()))
	}
	o.log.Warn(o.affected, attrs...)
}

// takeOutcomes returns the outcomes since the last summary as attributes.
func (o *outage) takeOutcomes() (attrs []any) {
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

// close logs the remaining outcomes.
func (o *outage) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.summarize()
}

// throttledLog logs a line at most once in logEvery, and how many it has skipped since.
type throttledLog struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (s *throttledLog) write(l *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() || now.Sub(s.last) >= logEvery {
		if s.skipped > 0 {
			attrs = append(attrs, slog.Int("skipped", s.skipped))
		}
		s.last, s.skipped = now, 0
		l.LogAttrs(context.Background(), level, message, attrs...)
		return
	}
	s.skipped++
}
