package memstore

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// micros returns d in microseconds, rounded up.
func micros(d time.Duration) int64 { return ceilDiv(int64(d), int64(time.Microsecond)) }

// duration saturates at both ends: a clock that goes back by centuries makes waits that
// long, and the wait for what is past is none.
func duration(micros int64) time.Duration {
	return time.Duration(min(max(0, micros), ratelimit.MaxDuration.Microseconds())) * time.Microsecond
}

// ceilDiv and floorDiv divide by a positive b.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
