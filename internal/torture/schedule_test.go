package torture_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// fault is a way in which a host can break.
type fault struct {
	name  string
	shard int // the shard that breaks, or all
	// begin breaks the host. Unless end is nil, the schedule waits for hold, and calls it.
	begin func(hold time.Duration) (end func())
	// After the fault, loses returns the shards that may have lost acknowledged writes. It may be nil. settle runs before
	// begin. If settle is not nil, only writes after the time that it returns may be lost.
	loses  func() []int
	settle func() int64
}

const all = -1

func always() []int { return []int{all} }

// outage is a fault that happened. Times are in microseconds, as in torture.Take.
type outage struct {
	*fault
	began, ended int64
	lossy        []int // the shards that may have lost writes
	lostFrom     int64 // only later writes may be lost; 0 if all writes may be lost
}

// loses reports whether acknowledged writes of a shard may be lost.
func (o outage) loses(shard int) bool {
	return slices.Contains(o.lossy, shard) || slices.Contains(o.lossy, all)
}

func (o outage) String() string {
	return fmt.Sprintf("%s of shard %d, %d to %d", o.name, o.shard, o.began, o.ended)
}

// happen breaks the host for a random time.
func (f *fault) happen(rnd *rand.Rand) outage {
	<-time.After(rand.N(100 * time.Millisecond))
	o := outage{fault: f}
	if f.settle != nil {
		o.lostFrom = f.settle()
	}
	o.began = now()
	hold := time.Duration(50+rnd.IntN(500)) * time.Millisecond
	if long() {
		hold *= time.Duration([]int{1, 1, 2, 2, 5}[rnd.IntN(5)])
	}
	if end := f.begin(hold); end != nil {
		<-time.After(hold)
		end()
	}
	if f.loses != nil {
		o.lossy = f.loses()
	}
	o.ended = now()
	return o
}

func now() int64 { return time.Now().UnixMicro() }

// host holds the faults of a schedule, and the limiters that callers use meanwhile.
type host struct {
	subjects   func() []*subject // returns new subjects
	shards     int
	perEpisode int             // the number of faults in an episode
	canary     *testhost.Redis // a server without faults, which is slow only if the machine is busy
	deadline   time.Duration   // the deadline of each take
	faults     []fault
	row        string // the host's row in the summary; "" if its faults have their own rows
	buggy      bool   // violations are wanted and do not appear in the summary
	strict     bool   // stalls are no excuse
	breaks     bool   // a timeout can make other takes fail: a circuit breaker opens, or a node refuses calls
}

// run carries out a schedule for the time length, in episodes with different keys, and returns the first violation.
func (h *host) run(t *testing.T, length time.Duration) error {
	rnd, end := random(t), time.Now().Add(length)
	var stalls *testenv.Stalls
	if !h.strict {
		stalls = watch(t, h.canary.Addr)
	}
	for number := 1; ; number++ {
		if err := h.episode(t, rnd, stalls); err != nil {
			return fmt.Errorf("episode %d: %w", number, err)
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// episode runs callers that take units while faults come and go, one at a time. Then it checks the results of the
// takes.
func (h *host) episode(t *testing.T, rnd *rand.Rand, stalls *testenv.Stalls) error {
	l := &log{subjects: h.subjects(), answered: make([]atomic.Int64, h.shards), stalls: stalls}
	stop := l.call(t.Context(), []int{4, 32, 256, 2000}[rnd.IntN(4)])
	defer stop()
	for range h.perEpisode {
		f := &h.faults[rnd.IntN(len(h.faults))]
		o := f.happen(rnd)
		l.outages = append(l.outages, o)
		if !l.awaitAnswers(o.ended) {
			break
		}
	}
	<-time.After(recovery + slack + 100*time.Millisecond) // after that, no take may fail
	stop()
	l.ended = now()
	err := l.check(h)
	if !h.buggy {
		l.tally(h, err)
	}
	return err
}

// awaitAnswers waits until takes of all shards that were sent after a time are answered. It returns false if
// they are too late for check.
func (l *log) awaitAnswers(after int64) bool {
	for i := range l.answered {
		for l.answered[i].Load() < after {
			<-time.After(2 * time.Millisecond)
			if took := time.Duration(now()-after) * time.Microsecond; took > min(timeout+l.maxRecovery(after, now()), 10*time.Second) {
				return false
			}
		}
	}
	return true
}
