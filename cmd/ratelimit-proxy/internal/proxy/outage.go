package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// logEvery is the minimum time between two log lines of the same kind, if clients or servers could cause them at any
// rate.
const logEvery = 10 * time.Second

// outage logs the beginning of an outage, with its cause, and its end. It logs at most one outage in logEvery.
type outage struct {
	log        *slog.Logger
	lost, back string // the messages

	failing atomic.Bool // the last call has failed

	mu       sync.Mutex
	since    time.Time // time of the first failure after the latest success
	reported time.Time // time when the beginning of an outage was last logged
	open     bool      // the beginning was logged, but not the end
}

// callFailed records a call that has failed.
func (o *outage) callFailed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// callSucceeded records a call that has succeeded.
func (o *outage) callSucceeded() {
	if !o.failing.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing.Swap(false) && o.open {
		o.open = false
		o.log.Warn(o.back, slog.String("after", time.Since(o.since).String()))
	}
}

// throttledLog logs at most one line in logEvery. It adds the number of lines that it has skipped since the previous
// one.
type throttledLog struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (s *throttledLog) write(l *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() && now.Sub(s.last) < logEvery {
		s.skipped++
		return
	}
	if s.skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", s.skipped))
	}
	s.last, s.skipped = now, 0
	l.LogAttrs(context.Background(), level, message, attrs...)
}
