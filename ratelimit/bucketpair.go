package ratelimit

import (
	"math"
	"sort"
)

// bucketPair counts in running totals. Its state is
//
//	b      epoch: the number of the newest bucket that was charged, time / interval. It
//	       never goes back, so a clock that does charges it, and nothing is lost.
//	words  life: which life of the counter this is, two words
//	       head: the newest bucket's place in the ring
//	       total: units charged so far, one word, or two when one cannot hold them
//	       ring: for each of the newest span/interval + 1 buckets, the total as it began,
//	       as wide as the total
//
// The units of a bucket and all after it are the total minus one entry of the ring, so a
// count of any interval costs the same; and as the ring never falls from older to newer,
// the moment when units age out is a binary search. Only differences matter: before a
// total no longer fits, that of the oldest bucket is taken off all of them.
type bucketPair struct{}

// Where things are among a counter's words.
const (
	ringHead   = 2
	ringTotals = 3
)

// ringWords is the length of a state with totals of that many words.
func (r *Rule) ringWords(width int) int { return ringTotals + width*(int(r.buckets)+2) }

func (p bucketPair) need(s state, r *Rule, n, now, _ int64) int {
	if s.words != nil {
		g := p.ring(s, r, now)
		if g.wide {
			return len(s.words)
		}
		if n += g.total(); n > math.MaxUint32 { // the oldest is far from the rest in memory
			n -= g.began(int64(r.buckets))
		}
	}
	if n > math.MaxUint32 {
		return r.ringWords(2)
	}
	return r.ringWords(1)
}

func (bucketPair) begin(s state, r *Rule, _, now, life, _ int64) {
	s.b = floorDiv(now, r.interval)
	put64(s.words, uint64(life))
}

func (bucketPair) reshape(s state, r *Rule, to []uint32, _, _, _ int64) {
	copy(to, s.words[:ringTotals])
	old, g := newRing(s, r), newRing(state{s.entry, to}, r)
	for i := range int64(r.buckets) + 2 {
		g.set(i, old.get(i))
	}
}

func (p bucketPair) fits(s state, r *Rule, n, now int64) bool {
	g := p.ring(s, r, now)
	return n <= maxCount-g.total() || n <= maxCount-(g.total()-g.began(int64(r.buckets)))
}

func (p bucketPair) passes(s state, r *Rule, n, now int64) bool {
	g := p.ring(s, r, now)
	return n <= r.limit-(g.total()-g.began(int64(r.window)))
}

// check counts over Per: the current bucket and as many before it as touch the interval.
func (p bucketPair) check(s state, r *Rule, n, now int64, res *Result) {
	if r.limit == 0 {
		res.Allowed = true
		return
	}
	g := p.ring(s, r, now)
	back, total := int64(r.window), g.total()
	used := total - g.began(back)
	res.Limit, res.Remaining = r.limit, max(0, r.limit-used)
	res.Allowed = n <= res.Remaining
	if !res.Allowed {
		res.RetryAfter = micros(g.until(r, back, total+n-r.limit, now))
	}
	if used > 0 {
		res.ResetAfter = micros(g.until(r, back, total, now))
	}
}

func (p bucketPair) charge(s state, r *Rule, n, now, _ int64) Receipt {
	g := p.ring(s, r, now)
	g.advance(s)
	if n > g.most()-g.total() {
		g.rebase(r)
	}
	g.set(0, g.total()+n)
	s.until = max((s.b+1)*r.interval+r.span, now+r.expiry)
	return Receipt{N: n, At: s.b, Life: int64(get64(s.words))}
}

func (p bucketPair) count(s state, r *Rule, interval, now int64) int64 {
	g := p.ring(s, r, now)
	return g.total() - g.began(ceilDiv(interval, r.interval))
}

// refund takes the units out of their bucket, so the totals at which the later ones
// began fall too.
func (p bucketPair) refund(s state, r *Rule, c Receipt, now int64) bool {
	g := p.ring(s, r, now)
	if c.N <= 0 || c.Life != int64(get64(s.words)) || c.At > g.epoch || c.At < g.newest-int64(r.buckets) {
		return false
	}
	back := g.newest - c.At
	if g.began(back-1)-g.began(back) < c.N {
		return false
	}
	g.advance(s)
	for b := back - 1; b >= 0; b-- {
		i := g.slot(b)
		g.set(i, g.get(i)-c.N)
	}
	g.set(0, g.total()-c.N)
	return true
}

// ring returns the state's ring at a time.
func (bucketPair) ring(s state, r *Rule, now int64) ring {
	g := newRing(s, r)
	if now >= (s.b+1)*r.interval {
		g.newest = floorDiv(now, r.interval)
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

func newRing(s state, r *Rule) ring {
	g := ring{words: s.words[ringTotals:], size: int64(r.buckets) + 1, epoch: s.b, newest: s.b, head: int64(s.words[ringHead])}
	g.wide = int64(len(g.words)) > g.size+1
	return g
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

// most returns the largest total that is exact and has room.
func (g *ring) most() int64 {
	if g.wide {
		return maxCount
	}
	return math.MaxUint32
}

// slot returns the index of the bucket that is back before epoch.
func (g *ring) slot(back int64) int64 {
	i := g.head - back
	if i < 0 {
		i += g.size
	}
	return 1 + i
}

// began returns the total as the bucket began that is back before the newest. Those after epoch
// began with all that there is.
func (g *ring) began(back int64) int64 {
	if back -= g.newest - g.epoch; back < 0 {
		return g.total()
	}
	return g.get(g.slot(back))
}

// rebase makes the totals as small as they can be.
func (g *ring) rebase(r *Rule) {
	base := g.began(int64(r.buckets))
	for i := range g.size + 1 {
		g.set(i, g.get(i)-base)
	}
}

// until returns the time to the end of the bucket after which the window of back+1
// buckets begins with at least need charged before it. It is always within reach: the
// caller's need is at most the total.
func (g *ring) until(r *Rule, back, need, now int64) int64 {
	out := int(back)
	if g.began(0) >= need { // not so if it is all that there is, and some is new
		out = sort.Search(out, func(i int) bool { return g.began(back-1-int64(i)) >= need })
	}
	return (g.newest+1+int64(out))*r.interval - now
}
