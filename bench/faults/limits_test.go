package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/decisions"
)

// fake is limiters with windows that begin with the first take.
type fake struct {
	chargesDenied bool
	alone         bool                // limiters don't share their counters
	limitsLess    int                 // is subtracted from the limit
	lasts         time.Duration       // is added to the windows' length
	hides         func(limit int) int // is subtracted from Remaining
	fails         func(call int) bool

	mu       sync.Mutex
	calls    int
	limiters int
	used     map[string]int
	ends     map[string]time.Time
}

func (f *fake) limiter(q decisions.Quota) (decisions.Take, error) {
	prefix := ""
	if f.limiters++; f.alone {
		prefix = fmt.Sprint(f.limiters, ":")
	}
	return func(_ context.Context, key string, n int) (decisions.Decision, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.calls++; f.fails != nil && f.fails(f.calls) {
			return decisions.Decision{}, errors.New("busy")
		}
		key = prefix + key
		if !time.Now().Before(f.ends[key]) {
			f.used[key], f.ends[key] = 0, time.Now().Add(q.Per+f.lasts)
		}
		allowed := f.used[key]+n <= q.Limit-f.limitsLess
		if allowed || f.chargesDenied {
			f.used[key] += n
		}
		left := q.Limit - f.used[key]
		if f.hides != nil {
			left -= f.hides(q.Limit)
		}
		return decisions.Decision{Allowed: allowed, Remaining: left}, nil
	}, nil
}

type limitLook func(c *client, open func() *client) (string, int)

// see returns what a check sees in f.
func (f *fake) see(t *testing.T, check limitLook) (string, error) {
	f.used, f.ends = map[string]int{}, map[string]time.Time{}
	seen, _, err := programs([]decisions.Contender{{Name: "fake", Open: openInMemory(f.limiter)}}, check)[0].check(t.Context(), "")
	return seen, err
}

func (f *fake) requireSeen(t *testing.T, want string, check limitLook) {
	t.Helper()
	seen, err := f.see(t, check)
	require.NoError(t, err)
	require.Equal(t, want, seen)
}

func (f *fake) requireError(t *testing.T, want string, check limitLook) {
	t.Helper()
	_, err := f.see(t, check)
	require.ErrorContains(t, err, want)
}

func TestChargeOfDeniedTakeIsNoticed(t *testing.T) {
	(&fake{}).requireSeen(t, "no", checkDenied)
	(&fake{chargesDenied: true}).requireSeen(t, "yes", checkDenied)
	(&fake{limitsLess: 3}).requireError(t, "does not keep a limit of 10", checkDenied)
	(&fake{limitsLess: -3}).requireError(t, "does not keep a limit of 10", checkDenied)
}

func TestWrongRemainingIsNoticed(t *testing.T) {
	(&fake{}).requireSeen(t, "never", checkRemaining)
	for want, wrong := range map[string]func(limit int) bool{
		"sometimes":  func(limit int) bool { return limit == 1000 },
		"about half": func(limit int) bool { return limit%2 == 0 },
		"mostly":     func(limit int) bool { return limit > 1 },
	} {
		for _, less := range []int{1, -1000} {
			f := fake{hides: func(limit int) int {
				if wrong(limit) {
					return less
				}
				return 0
			}}
			f.requireSeen(t, want, checkRemaining)
		}
	}
}

func TestFailedCallsAreNoticed(t *testing.T) {
	(&fake{}).requireSeen(t, "none", checkHotKey)
	(&fake{fails: func(call int) bool { return call == 3200 }}).requireSeen(t, "some", checkHotKey)
	(&fake{fails: func(call int) bool { return call%3 == 0 }}).requireSeen(t, "many", checkHotKey)
}

func TestWrongSumOfInstancesIsNoticed(t *testing.T) {
	(&fake{}).requireSeen(t, "100", checkInstances)
	(&fake{fails: func(call int) bool { return call%3 == 0 }}).requireSeen(t, "100", checkInstances)
	(&fake{alone: true}).requireSeen(t, "more than 100", checkInstances)
	(&fake{limitsLess: 1}).requireSeen(t, "less than 100", checkInstances)
	(&fake{lasts: -25 * time.Hour}).requireError(t, "nothing is denied", checkInstances)
}

func TestUnitsAtTheEdgeAreCounted(t *testing.T) {
	for want, f := range map[string]*fake{
		"about 200":   {},
		"at most 100": {lasts: time.Second},
		"about 150":   {limitsLess: 25},
	} {
		synctest.Test(t, func(t *testing.T) { f.requireSeen(t, want, checkEdge) })
	}
}

func TestLateUnitsAreNoticed(t *testing.T) {
	for want, f := range map[string]*fake{
		"on time":         {},
		"up to 5 % late":  {lasts: time.Second / 5},
		"up to 50 % late": {lasts: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) { f.requireSeen(t, want, checkReturn) })
	}
	synctest.Test(t, func(t *testing.T) {
		(&fake{lasts: time.Hour}).requireError(t, "only 0 of 100 units come back", checkReturn)
	})
	synctest.Test(t, func(t *testing.T) {
		(&fake{limitsLess: 1}).requireError(t, "admits only 99 of 100", checkReturn)
	})
}

func TestCancelEndsTheWait(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, check := range []limitLook{checkEdge, checkReturn} {
		f := &fake{}
		_, _, err := programs([]decisions.Contender{{Open: openInMemory(f.limiter)}}, check)[0].check(ctx, "")
		require.ErrorIs(t, err, gone)
	}
}

func TestOtherClientsAreNoticed(t *testing.T) {
	admits := func(n int) func(...string) int { return func(...string) int { return n } }
	seen, _ := checkPrefix(admits(1))
	require.Equal(t, "no", seen)
	seen, _ = checkPrefix(admits(3))
	require.Equal(t, "yes", seen)
	seen, _ = checkMapped(admits(2))
	require.Equal(t, "yes", seen)
	seen, _ = checkMapped(admits(1))
	require.Equal(t, "all are one client", seen)
}
