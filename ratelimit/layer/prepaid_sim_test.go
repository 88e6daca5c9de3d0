package layer

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// simulatedRules has rules of each algorithm. A simulation is several times as long as their Per.
var simulatedRules = map[string]ratelimit.Rule{
	"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 2 * time.Second, Interval: 200 * time.Millisecond, Span: 2 * time.Second}),
	"log":     ratelimit.SlidingLog(1000, 2*time.Second),
	"window":  ratelimit.FixedWindow(1000, 2*time.Second),
	"gcra":    ratelimit.GCRA(1000, 2*time.Second).WithBurst(800),
}

// checkedRule returns the description of r for package torture.
func checkedRule(r ratelimit.Rule) torture.Rule {
	switch r.Algorithm() {
	case "buckets":
		return torture.Buckets(r.Limit(), r.Per(), r.Interval())
	case "log":
		return torture.SlidingLog(r.Limit(), r.Per())
	case "window":
		return torture.FixedWindow(r.Limit(), r.Per())
	}
	return torture.GCRA(r.Limit(), r.Per(), r.Burst())
}

// far is the store of one process. Its calls and replies take some time, as in a network.
type far struct {
	ratelimit.Store
	sim  *simulation
	dead atomic.Bool // whether the process is dead
}

func (f *far) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	f.sim.wait(time.Millisecond)
	if f.dead.Load() {
		return nil, ratelimit.ErrStore
	}
	ops = slices.Clone(ops)
	for i := range ops {
		if f.sim.wrong {
			ops[i].Prepaid = 0
		}
	}
	results, err := f.Store.Do(ctx, ops)
	f.sim.note(ops, results)
	for i := range results {
		if f.sim.wrong {
			results[i].ResetAfter += f.sim.rule.Per() / 20
		}
	}
	f.sim.wait(time.Millisecond)
	return results, err
}

func (f *far) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(f.Do).DoOne(ctx, op)
}

// simulation simulates processes that take units of the same key. It runs in a synctest bubble.
type simulation struct {
	rule   ratelimit.Rule
	wrong  bool // whether the store has the bugs of TestSimulationDetectsWrongAllotments
	storms bool // whether all takers are busy at the same time now and then
	length time.Duration

	mu         sync.Mutex
	rand       *rand.Rand
	takes      []torture.Take
	ends       []int64 // the ends of windows
	allotments int
	lost       map[int64]int64 // the number of units that could not be given back, for each Expiry of the rule
}

func (s *simulation) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// wait waits for a random time below most.
func (s *simulation) wait(most time.Duration) { <-time.After(time.Duration(s.draw(int(most)))) }

func (s *simulation) note(ops []ratelimit.Op, results []ratelimit.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, res := range results {
		if ops[i].Kind == ratelimit.Refund && !res.Allowed {
			s.lost[time.Now().UnixMicro()/s.rule.Expiry().Microseconds()] += ops[i].Receipt.N
		}
		if ops[i].Kind != ratelimit.Take || !res.Allowed {
			continue
		}
		s.ends = append(s.ends, res.Receipt.At)
		if ops[i].Prepaid > 0 || ops[i].N > 3 {
			s.allotments++
		}
	}
}

// process runs a process with eight takers, until the simulation ends or the process dies. If dies is 0, the process
// does not die.
func (s *simulation) process(t *testing.T, store ratelimit.Store, o PrepaidOptions, dies time.Duration) {
	f := &far{Store: store, sim: s}
	l, err := newPrepaid(f, o)
	if !assert.NoError(t, err) {
		return
	}
	begun := time.Now()
	var takers sync.WaitGroup
	for range 8 {
		takers.Go(func() {
			for !f.dead.Load() && time.Since(begun) < s.length {
				s.ask(t, f, l)
			}
		})
	}
	if dies > 0 {
		<-time.After(dies)
		f.dead.Store(true)
	}
	takers.Wait()
	if err := l.Close(); dies == 0 {
		assert.NoError(t, err)
	}
}

// ask takes units once or several times. With storms, all takers are busy at the same time now and then. Otherwise,
// each taker has busy times of its own.
func (s *simulation) ask(t *testing.T, f *far, l *prepaidLayer) {
	if !s.storms {
		for range s.draw(60) {
			s.take(t, f, l)
			s.wait(4 * time.Millisecond)
		}
		s.wait(400 * time.Millisecond)
		return
	}
	s.take(t, f, l)
	const turn = 3 * time.Second
	if calm := turn*4/5 - time.Duration(time.Now().UnixNano())%turn; calm > 0 {
		s.wait(min(400*time.Millisecond, calm))
	} else {
		s.wait(4 * time.Millisecond)
	}
}

func (s *simulation) take(t *testing.T, f *far, l *prepaidLayer) {
	n := int64(1 + s.draw(3))
	k := torture.Take{N: n, Sent: time.Now().UnixMicro()}
	res, err := l.DoOne(t.Context(), ratelimit.Op{Rule: s.rule, Key: "k", N: n, Kind: ratelimit.Take})
	k.Received, k.Allowed, k.Failed = time.Now().UnixMicro(), res.Allowed, err != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.Failed || !f.dead.Load() {
		s.takes = append(s.takes, k)
	}
}

// run runs three processes that live to the end. With deaths, it also runs three processes one after another that
// die. It returns the number of units that were admitted.
func (s *simulation) run(t *testing.T, o PrepaidOptions, deaths bool) (admitted int64) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		var processes sync.WaitGroup
		for range 3 {
			processes.Go(func() { s.process(t, store, o, 0) })
		}
		for range 3 {
			if deaths {
				s.process(t, store, o, s.length/6+time.Duration(s.draw(int(s.length/6))))
			}
		}
		processes.Wait()
		for _, k := range s.takes {
			require.False(t, k.Failed, "%v", k)
			if k.Allowed {
				admitted += k.N
			}
		}
		if s.rule.Algorithm() != "gcra" && !deaths && !s.wrong {
			s.compare(t, store)
		}
	})
	return admitted
}

// compare checks that the store has charged exactly the units that were spent. All allotments have been given back.
func (s *simulation) compare(t *testing.T, store ratelimit.Store) {
	out, err := store.Do(t.Context(), []ratelimit.Op{{Rule: s.rule, Key: "k", Kind: ratelimit.Count}})
	require.NoError(t, err)
	var least, most int64
	const way = 2 * time.Millisecond // the longest time from a charge to its reply
	for _, k := range s.takes {
		age := time.Duration(time.Now().UnixMicro()-k.Received) * time.Microsecond
		if window := slices.Max(s.ends); s.rule.Algorithm() == "window" {
			if time.Now().UnixMicro() >= window {
				break
			}
			age = time.Duration(window-k.Received) * time.Microsecond
		}
		if k.Allowed && age+way < s.rule.Per() {
			least += k.N
		}
		if k.Allowed && age < s.rule.Per()*3/2 {
			most += k.N
		}
	}
	require.GreaterOrEqual(t, out[0].Count, least)
	require.LessOrEqual(t, out[0].Count, most)
}

// check returns the result of torture.Check for allotments that last life. At most held units are prepaid and not
// spent at a time.
func (s *simulation) check(life time.Duration, held int64) error {
	rule := checkedRule(s.rule)
	if s.rule.Algorithm() == "window" {
		rule = rule.WithWindowEnds(s.rule.Limit(), s.rule.Per(), s.ends)
	}
	return torture.Check(torture.Prepaid(rule, life, held), s.takes)
}

func newSimulation(r ratelimit.Rule) *simulation {
	return &simulation{rule: r, length: 8 * time.Second, rand: rand.New(rand.NewPCG(rand.Uint64(), 1)), lost: map[int64]int64{}}
}

// TestAllotmentsKeepTheLimit checks processes with allotments that take from the same store. They never admit more
// units than the rule allows. They admit fewer only because of units that are prepaid or were lost with a process.
func TestAllotmentsKeepTheLimit(t *testing.T) {
	const share = 50
	for name, r := range simulatedRules {
		for i, what := range []string{"", "deaths", "storms", "storms, deaths"} {
			if testenv.Racing && (i == 1 || i == 2) {
				continue // with the race detector, two of the four combinations are enough
			}
			t.Run(name+" "+what, func(t *testing.T) {
				s, deaths := newSimulation(r), i%2 == 1
				s.storms = i > 1
				admitted := s.run(t, PrepaidOptions{Share: share}, deaths)
				life, most := 100*time.Millisecond, r.Burst()/share
				held := 3 * (2*most + 3)
				if deaths {
					held += 2 * (2*most + 3) // the counter still has the prepaid units of dead processes
				}
				if r.Algorithm() == "gcra" {
					held += r.Limit()*int64(life)/int64(r.Per()) + 2*slices.Max(append(slices.Collect(maps.Values(s.lost)), 0))
				} else if r.Algorithm() != "window" && !deaths { // units of a window that has ended cannot be given back
					require.Empty(t, s.lost)
				}
				t.Logf("%d takes, %d units admitted, %d allotments, %d units held", len(s.takes), admitted, s.allotments, held)
				require.NoError(t, s.check(life, held))
				require.Greater(t, s.allotments, 20)
				require.Greater(t, admitted, r.Limit()*int64(s.length)/int64(r.Per())/2)
			})
		}
	}
}

// TestSimulationDetectsWrongAllotments checks that TestAllotmentsKeepTheLimit finds a store with two bugs: it charges
// allotments when they are taken, and it reports that windows end later than they do.
func TestSimulationDetectsWrongAllotments(t *testing.T) {
	for name, r := range simulatedRules {
		t.Run(name, func(t *testing.T) {
			for i := range 20 {
				s := newSimulation(r)
				s.wrong, s.storms = true, i%2 == 0
				s.run(t, PrepaidOptions{}, false)
				if err := s.check(0, 1<<40); err != nil {
					t.Log(err)
					return
				}
			}
			t.Fatal("nothing was noticed in 20 runs")
		})
	}
}
