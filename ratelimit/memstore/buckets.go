package memstore

import (
	"math"
	"sort"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// bucketAlgorithm counts in time buckets. Its state is
//
//	b      epoch: the number of the newest bucket that was charged, time / interval. It never
//	       decreases: if the clock goes back, this bucket is charged.
//	words  generation of the counter, two words
//	       head: the place of the newest bucket in the ring
//	       total: the units charged so far, in one word or two
//	       ring: the totals at the beginning of the newest span/interval + 1 buckets, as wide as the
//	       total
//
// The current total minus the total at the beginning of a bucket is the number of units in that bucket and all later
// buckets. So a count takes the same time for every interval. Totals only increase, so a binary search finds the time at
// which units leave the window. Only differences of totals matter: before a total becomes too large, the total of the
// oldest bucket is subtracted from all totals.
type bucketAlgorithm struct{}

// These are the places of the head and of the ring's totals among a counter's words.
const (
	ringHead   = 2
	ringTotals = 3
)

func (p *bucketAlgorithm) wordsNeeded(s state, r *rule, n, now, _ int64) int {
	if s.words != nil {
		g := p.ring(s, r, now)
		if g.wide {
			return len(s.words)
		}
		if n += g.total(); n > math.MaxUint32 { // the oldest total is read only now, because it is far away in memory
			n -= g.totalBefore(int64(r.Buckets))
		}
	}
	width := 1
	if n > math.MaxUint32 {
		width = 2
	}
	return ringTotals + width*(int(r.Buckets)+2)
}

func (*bucketAlgorithm) begin(s state, r *rule, _, now, generation, _ int64) {
	s.b = floorDiv(now, r.Interval)
	put64(s.words, uint64(generation))
}

func (p *bucketAlgorithm) reshape(s state, r *rule, to []uint32, _, now, _ int64) {
	copy(to, s.words[:ringTotals])
	old, g := p.ring(s, r, now), p.ring(state{s.entry, to}, r, now)
	for i := range int64(r.Buckets) + 2 {
		g.set(i, old.get(i))
	}
}

func (p *bucketAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	g := p.ring(s, r, now)
	total := g.total()
	allowed = n <= r.Limit-(total-g.totalBefore(int64(r.Window)))
	return allowed, n <= layout.MaxCount-total || n <= layout.MaxCount-(total-g.totalBefore(int64(r.Buckets)))
}

// quota counts the current bucket and all earlier buckets that overlap the last Per.
func (p *bucketAlgorithm) quota(s state, r *rule, n, now int64) (q quota) {
	g := p.ring(s, r, now)
	back, total := int64(r.Window), g.total()
	used := total - g.totalBefore(back)
	q.remaining = max(0, r.Limit-used)
	if n > q.remaining {
		q.retry = g.timeUntil(r, back, total+n-r.Limit, now)
	}
	if used > 0 {
		q.reset = g.timeUntil(r, back, total, now)
	}
	return q
}

func (p *bucketAlgorithm) charge(s state, r *rule, n, now, _ int64) ratelimit.Receipt {
	g := p.ring(s, r, now)
	g.advance(s)
	if n > g.maxTotal()-g.total() {
		g.rebase(r)
	}
	g.set(0, g.total()+n)
	s.until = max((s.b+1)*r.Interval+r.Span, now+r.Expiry)
	return ratelimit.Receipt{N: n, At: s.b, Generation: int64(get64(s.words))}
}

func (p *bucketAlgorithm) count(s state, r *rule, interval, now int64) int64 {
	g := p.ring(s, r, now)
	return g.total() - g.totalBefore(ceilDiv(interval, r.Interval))
}

// refund subtracts the units from the total, and from the totals at the beginning of later buckets.
func (p *bucketAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now int64) bool {
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

// ring holds the totals: index 0 is the current total, and the following totals are a circular list of buckets.
type ring struct {
	words  []uint32
	wide   bool  // a total has two words
	size   int64 // the number of buckets in the list
	epoch  int64 // the newest bucket in the list
	newest int64 // the current bucket
	head   int64 // the place of epoch in the list, from 0 to size-1
}

// ring returns the ring of a counter.
func (*bucketAlgorithm) ring(s state, r *rule, now int64) ring {
	g := ring{words: s.words[ringTotals:], size: int64(r.Buckets) + 1, epoch: s.b, newest: s.b, head: int64(s.words[ringHead])}
	g.wide = int64(len(g.words)) > g.size+1
	if now >= (s.b+1)*r.Interval {
		g.newest = floorDiv(now, r.Interval)
	}
	return g
}

// advance adds the buckets after epoch up to newest to the list. After a long gap, it replaces the whole list.
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

// maxTotal returns the largest total that the ring can hold.
func (g *ring) maxTotal() int64 {
	if g.wide {
		return layout.MaxCount
	}
	return math.MaxUint32
}

// indexOf returns the index of the bucket that is a number of buckets before epoch.
func (g *ring) indexOf(back int64) int64 {
	i := g.head - back
	if i < 0 {
		i += g.size
	}
	return 1 + i
}

// totalBefore returns the total at the beginning of the bucket that is a number of buckets before newest. For a bucket
// after epoch, this is the current total.
func (g *ring) totalBefore(back int64) int64 {
	if back -= g.newest - g.epoch; back < 0 {
		return g.total()
	}
	return g.get(g.indexOf(back))
}

// rebase subtracts the total of the oldest bucket from all totals.
func (g *ring) rebase(r *rule) {
	base := g.totalBefore(int64(r.Buckets))
	for i := range g.size + 1 {
		g.set(i, g.get(i)-base)
	}
}

// timeUntil returns the time until all units up to a total of need have left the window, which has back+1 buckets. need
// is at most the current total.
func (g *ring) timeUntil(r *rule, back, need, now int64) int64 {
	out := int(back)
	if g.totalBefore(0) >= need {
		out = sort.Search(out, func(i int) bool { return g.totalBefore(back-1-int64(i)) >= need })
	}
	return (g.newest+1+int64(out))*r.Interval - now
}
