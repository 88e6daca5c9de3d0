package inspect

import "time"

// windowSeconds is how many seconds the strip at the top of the page is about.
const windowSeconds = 60

// second counts the requests that ended in one second.
type second struct {
	unix                    int64
	requests, failed        uint32
	denied                  uint32
	storeCalls, storeErrors uint32
	failovers               uint32 // decisions without the store, because it had failed
	took                    histogram
}

// window has the last seconds.
type window [windowSeconds]second

// secondAt returns the second of t, emptied if it was another one's.
func (w *window) secondAt(t time.Time) *second {
	unix := t.Unix()
	s := &w[unix%windowSeconds]
	if s.unix != unix {
		*s = second{unix: unix}
	}
	return s
}

// strip is the summary of a window.
type strip struct {
	PerSecond   float64  `json:"perSecond"` // over the last 10 complete seconds
	Requests    uint32   `json:"requests"`
	Failed      uint32   `json:"failed"`
	Denied      uint32   `json:"denied"`
	StoreCalls  uint32   `json:"storeCalls"`
	StoreErrors uint32   `json:"storeErrors"`
	Failovers   uint32   `json:"failovers"`
	P50         float64  `json:"p50"` // durations are in milliseconds
	P99         float64  `json:"p99"`
	History     []uint32 `json:"history"` // requests of each complete second, the oldest first
}

// summary describes the complete seconds before now and the present one.
func (w *window) summary(now time.Time) strip {
	const recent = 10
	out := strip{History: make([]uint32, windowSeconds-1)}
	var took histogram
	lastTen := uint32(0)
	for i := range w {
		s := &w[i]
		age := now.Unix() - s.unix
		if age < 0 || age >= windowSeconds {
			continue
		}
		out.Requests += s.requests
		out.Failed += s.failed
		out.Denied += s.denied
		out.StoreCalls += s.storeCalls
		out.StoreErrors += s.storeErrors
		out.Failovers += s.failovers
		took.merge(&s.took)
		if age > 0 {
			out.History[windowSeconds-1-age] = s.requests
		}
		if age > 0 && age <= recent {
			lastTen += s.requests
		}
	}
	out.PerSecond = float64(lastTen) / recent
	out.P50, out.P99 = millis(took.quantile(.5)), millis(took.quantile(.99))
	return out
}

func millis(d time.Duration) float64 { return float64(d.Round(100)) / 1e6 }
