package memstore

import (
	"math"
	"sort"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// bucketAlgorithm counts in running totals. Its state is
//
//	b      epoch: the number of the newest bucket that was charged, time / interval. It
//	       never goes back, so a clock that does charges it, and nothing is lost.
//	words  generation: the generation of the counter, two words
//	       head: the newest bucket's place in the ring
//	       total: units charged so far, one word, or two when one cannot hold them
//	       ring: for each of the newest span/interval + 1 buckets, the total as it began,
//	       as wide as the total
//
// The units of a bucket and all after it are the total minus one entry of the ring, so a
// count of any interval costs the same; and as the ring never falls from older to newer,
// the moment when units age out is a binary search. Only differences matter: before a
// total no longer fits, that of the oldest bucket is taken off all of them.
type bucketAlgorithm struct{}

// Where things are among a counter's words.
const (
	ringHead   = 2
	ringTotals = 3
)

func (p bucketAlgorithm) wordsNeeded(s state, r *rule, n, now, _ int64) int {
	if s.words != nil {
		g := p.ring(s, r, now)
		if g.wide {
			return len(s.words)
		}
		if n += g.total(); n > math.MaxUint32 { // the oldest is far from the rest in memory
			n -= g.totalBefore(int64(r.Buckets))
		}
	}
	width := 1
	if n > math.MaxUint32 {
		width = 2
	}
	return ringTotals + width*(int(r.Buckets)+2)
}

func (bucketAlgorithm) begin(s state, r *rule, _, now, generation, _ int64) {
	s.b = floorDiv(now, r.Interval)
	put64(s.words, uint64(generation))
}

func (p bucketAlgorithm) reshape(s state, r *rule, to []uint32, _, now, _ int64) {
	copy(to, s.words[:ringTotals])
	old, g := p.ring(s, r, now), p.ring(state{s.entry, to}, r, now)
	for i := range int64(r.Buckets) + 2 {
		g.set(i, old.get(i))
	}
}

func (p bucketAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	g := p.ring(s, r, now)
	total := g.total()
	allowed = n <= r.Limit-(total-g.totalBefore(int64(r.Window)))
	return allowed, n <= storage.MaxCount-total || n <= storage.MaxCount-(total-g.totalBefore(int64(r.Buckets)))
}

// check counts over Per: the current bucket and as many before it as touch the interval.
func (p bucketAlgorithm) check(s state, r *rule, n, now int64, res *ratelimit.Result) {
	if r.Limit == 0 {
		res.Allowed = true
		return
	}
	g := p.ring(s, r, now)
	back, total := int64(r.Window), g.total()
	used := total - g.totalBefore(back)
	res.Limit, res.Remaining = r.Limit, max(0, r.Limit-used)
	res.Allowed = n <= res.Remaining
	if !res.Allowed {
		res.RetryAfter = layout.Duration(g.timeUntil(r, back, total+n-r.Limit, now))
	}
	if used > 0 {
		res.ResetAfter = layout.Duration(g.timeUntil(r, back, total, now))
	}
}

func (p bucketAlgorithm) charge(s state, r *rule, n, now, _ int64) ratelimit.Receipt {
	g := p.ring(s, r, now)
	g.advance(s)
	if n > g.maxTotal()-g.total() {
		g.rebase(r)
	}
	g.set(0, g.total()+n)
	s.until = max((s.b+1)*r.Interval+r.Span, now+r.Expiry)
	return ratelimit.Receipt{N: n, At: s.b, Generation: int64(get64(s.words))}
}

func (p bucketAlgorithm) count(s state, r *rule, interval, now int64) int64 {
	g := p.ring(s, r, now)
	return g.total() - g.totalBefore(ceilDiv(interval, r.Interval))
}

// refund takes the units out of their bucket, so the totals at which the later ones
// began fall too.
func (p bucketAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now int64) bool {
	g := p.ring(s, r, now)
	if c.N <= 0 || c.Generation != int64(get64(s.words)) || c.At > g.epoch || c.At < g.newest-int64(r.Buckets) {
		return false
	}
	back := g.newest - c.At
	if g.totalBefore(back-1)-g.totalBefore(back) < c.N {
		return false
	}
	g.advance(s)
	for b := back - 1; b >= 0; b-- {
		i := g.indexOf(b)
		g.set(i, g.get(i)-c.N)
	}
	g.set(0, g.total()-c.N)
	return true
}

// ring returns the state's ring at a time.
func (bucketAlgorithm) ring(s state, r *rule, now int64) ring {
	g := ring{words: s.words[ringTotals:], size: int64(r.Buckets) + 1, epoch: s.b, newest: s.b, head: int64(s.words[ringHead])}
	g.wide = int64(len(g.words)) > g.size+1
	if now >= (s.b+1)*r.Interval {
		g.newest = floorDiv(now, r.Interval)
	}
	return g
}

// advance begins the buckets that the time has reached. A gap of more than a lap begins them
// all.
func (g *ring) advance(s state) {
	for range min(g.newest-g.epoch, g.size) {
		if g.head++; g.head == g.size {
			g.head = 0
		}
		g.set(1+g.head, g.total())
	}
	g.epoch, s.b = g.newest, g.newest
	s.words[ringHead] = uint32(g.head)
}

// ring addresses the totals: 0 is the present one, the others lie in a circle.
type ring struct {
	words  []uint32
	wide   bool  // two words each
	size   int64 // buckets in the circle
	epoch  int64 // the newest of them
	newest int64 // the bucket that the time has reached
	head   int64 // place of epoch, from 0 to size-1
}

func (g *ring) get(i int64) int64 {
	if g.wide {
		return int64(get64(g.words[2*i:]))
	}
	return int64(g.words[i])
}

func (g *ring) set(i, v int64) {
	if g.wide {
		put64(g.words[2*i:], uint64(v))
		return
	}
	g.words[i] = uint32(v)
}

func (g *ring) total() int64 { return g.get(0) }

// maxTotal returns the largest total that is exact and has room.
func (g *ring) maxTotal() int64 {
	if g.wide {
		return storage.MaxCount
	}
	return math.MaxUint32
}

// indexOf returns the index of the bucket that is back before epoch.
func (g *ring) indexOf(back int64) int64 {
	i := g.head - back
	if i < 0 {
		i += g.size
	}
	return 1 + i
}

// totalBefore returns the total as the bucket began that is back before the newest. Those after epoch
// began with all that there is.
func (g *ring) totalBefore(back int64) int64 {
	if back -= g.newest - g.epoch; back < 0 {
		return g.total()
	}
	return g.get(g.indexOf(back))
}

// rebase makes the totals as small as they can be.
func (g *ring) rebase(r *rule) {
	base := g.totalBefore(int64(r.Buckets))
	for i := range g.size + 1 {
		g.set(i, g.get(i)-base)
	}
}

// timeUntil returns the time to the end of the bucket after which the window of back+1
// buckets begins with at least need charged before it. It is always within reach: the
// caller's need is at most the total.
func (g *ring) timeUntil(r *rule, back, need, now int64) int64 {
	out := int(back)
	if g.totalBefore(0) >= need { // not so if it is all that there is, and some is new
		out = sort.Search(out, func(i int) bool { return g.totalBefore(back-1-int64(i)) >= need })
	}
	return (g.newest+1+int64(out))*r.Interval - now
}
