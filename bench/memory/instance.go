package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// quota is a limit of each key.
type quota struct {
	limit int
	per   time.Duration
}

var (
	// wide is a quota that no loop exhausts.
	wide = quota{100_000_000, time.Minute}
	// narrow is a quota that returns no unit within a round.
	narrow = quota{100, 24 * time.Hour}
)

// contender is a kind of limiter.
type contender struct {
	name string
	// open returns a new limiter that has room for maxKeys keys if it has a bound.
	open func(q quota, maxKeys int) (limiter, error)
}

// limiter is safe for concurrent use.
type limiter struct {
	take  func(key string) (bool, error)
	close func()
}

// instance measures a contender in a case. Each round has a new limiter, so that no other contender's keys are in memory.
type instance struct {
	contender
	load   load
	length time.Duration
}

// Close implements [harness.Instance].
func (*instance) Close() error { return nil }

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(in.load.procs))
	before := heapInUse()
	l, err := in.open(wide, 2<<20)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if !in.load.fresh {
		if err := fill(l, in.load.keys); err != nil {
			return nil, err
		}
	}
	values, err := in.measure(ctx, l)
	if err != nil {
		return nil, err
	}
	values["memory per key"] = (float64(heapInUse()) - float64(before)) / values["keys"]
	delete(values, "keys")
	runtime.KeepAlive(l)
	return values, in.checkQuota()
}

// fill takes a unit of each key.
func fill(l limiter, n int) error {
	var keys keyMaker
	for i := range n {
		if ok, err := l.take(keys.key(i)); !ok || err != nil {
			return wrongDenial("a first take", err)
		}
	}
	return nil
}

// wrongDenial returns the error for a take that should have passed. err is nil if the take was denied.
func wrongDenial(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %s fails: %w", harness.ErrWrong, what, err)
	}
	return fmt.Errorf("%w: %s is denied", harness.ErrWrong, what)
}

// measure runs the timed loop. Besides the metrics, the result has the number of keys in the limiter.
func (in *instance) measure(ctx context.Context, l limiter) (map[string]float64, error) {
	var over atomic.Bool
	var start, end runtime.MemStats
	done, failures := make([]int, in.load.procs), make([]error, in.load.procs)
	runtime.ReadMemStats(&start)
	timer := time.AfterFunc(in.length, func() { over.Store(true) })
	defer timer.Stop()
	began := time.Now()
	var loops sync.WaitGroup
	for p := range in.load.procs {
		loops.Go(func() { done[p], failures[p] = in.loop(l, p, &over) })
	}
	loops.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&end)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n := 0
	for _, d := range done {
		n += d
	}
	held := float64(in.load.keys)
	if in.load.fresh {
		held = float64(n)
	}
	return map[string]float64{
		"time per decision":        float64(took.Nanoseconds()) / float64(n),
		"allocations per decision": math.Round(100*float64(end.Mallocs-start.Mallocs)/float64(n)) / 100,
		"keys":                     held,
	}, errors.Join(failures...)
}

// stride is a prime number, so steps of this length visit all keys in an order that processors cannot predict.
const stride = 7919

// loop takes units until the time is over. If the keys are fresh, loop also ends when it has used its share of them.
func (in *instance) loop(l limiter, p int, over *atomic.Bool) (n int, err error) {
	var keys keyMaker
	next, step := p*in.load.keys/in.load.procs, stride
	if in.load.fresh {
		next, step = p, in.load.procs
	}
	for ; !over.Load(); n++ {
		ok, err := l.take(keys.key(next))
		if !ok || err != nil {
			return n, wrongDenial("a take far below the limit", err)
		}
		if next += step; next >= in.load.keys {
			if in.load.fresh {
				return n + 1, nil
			}
			next %= in.load.keys
		}
	}
	return n, nil
}

// checkQuota has all goroutines take twice as many units of a few keys as a narrow quota has.
func (in *instance) checkQuota() error {
	l, err := in.open(narrow, 1000)
	if err != nil {
		return err
	}
	defer l.close()
	admitted := make([]atomic.Int64, 4)
	var loops sync.WaitGroup
	for range in.load.procs {
		loops.Go(func() {
			var keys keyMaker
			for i := range 2 * narrow.limit * len(admitted) / in.load.procs {
				if ok, err := l.take(keys.key(i % len(admitted))); ok && err == nil {
					admitted[i%len(admitted)].Add(1)
				}
			}
		})
	}
	loops.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n != int64(narrow.limit) {
			return fmt.Errorf("%w: admitted %d, allowed were %d", harness.ErrWrong, n, narrow.limit)
		}
	}
	return nil
}

// heapInUse returns the size of the live objects. A limiter that ends in a finalizer is freed by a later collection than the
// first, so heapInUse collects until nothing more is freed.
func heapInUse() uint64 {
	for last := uint64(math.MaxUint64); ; {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc+m.HeapAlloc/100 >= last {
			return m.HeapAlloc
		}
		last = m.HeapAlloc
	}
}

// keyMaker makes keys. Each is in new memory, like the key of a request, so a limiter that compares keys must also read
// its own copy.
type keyMaker struct{ free []byte }

const keyLen = 12

// key returns key number i.
func (m *keyMaker) key(i int) string {
	if len(m.free) < keyLen {
		m.free = make([]byte, 64<<10)
	}
	key := m.free[:keyLen]
	m.free = m.free[keyLen:]
	copy(key, "10.1.aaaaaaa")
	for at := keyLen - 1; i > 0; at-- {
		key[at] += byte(i & 15)
		i >>= 4
	}
	return unsafe.String(&key[0], keyLen) // these bytes do not change from here on
}
