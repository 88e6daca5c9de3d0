package memstore

import (
	"math"
	"sort"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// bucketAlgorithm counts in time buckets. Its state is
//
//	until  the end of the newest bucket that was charged, plus the rule's span. The end never goes back: if the clock
//	       goes back, this bucket is charged.
//	b      twice the units in the window that ends with this bucket, plus 1 if the bucket has no units
//	words  generation of the counter, two words
//	       head: the place of the newest bucket in the ring
//	       ring: the totals at the beginning of the newest span/interval + 1 buckets, in one word or two each
//
// A total is the number of units charged before some time. The difference of two totals is the number of units in the
// buckets between them. So a count takes the same time for every interval. Totals only increase, so a binary search finds
// the time at which units leave the window. Only differences of totals matter: before a total becomes too large, the total
// of the oldest bucket is subtracted from all totals.
//
// The current total is not stored: it is the total at the beginning of the window plus the units in the window. So while
// the newest bucket lasts, a take that passes reads and writes only the entry, and not the words, which are far away in
// memory.
type bucketAlgorithm struct{}

// These are the places of the head and of the ring's totals among a counter's words.
const (
	ringHead   = 2
	ringTotals = 3
)

func (*bucketAlgorithm) wordsNeeded(s state, r *rule, _, now, _ int64) int {
	width := 1
	switch {
	case s.words == nil:
	case lasts(s, r, now) || fits(s, r, now):
		return len(s.words)
	default:
		width = 2
	}
	return ringTotals + width*(int(r.Buckets)+1)
}

// begin sets the newest bucket to one that has left the span.
func (*bucketAlgorithm) begin(s state, r *rule, _, now, generation, _ int64) {
	s.until, s.b = floorDiv(now-r.Span, r.Interval)*r.Interval+r.Span, 1
	put64(s.words, uint64(generation))
}

func (*bucketAlgorithm) reshape(s state, r *rule, to []uint32, _, now, _ int64) {
	copy(to, s.words[:ringTotals])
	old, g := ringOf(s, r, now), ringOf(state{s.entry, to}, r, now)
	for i := range g.size() {
		g.set(i, old.get(i))
	}
}

func (*bucketAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	if used := s.b >> 1; used+n <= math.MaxUint32 && lasts(s, r, now) && !wide(s, r) {
		return n <= r.Limit-used, true
	}
	g := ringOf(s, r, now)
	return n <= r.Limit-g.used(), n <= layout.MaxCount-(g.total()-g.base())
}

// quota counts the current bucket and all earlier buckets that overlap the last Per.
func (*bucketAlgorithm) quota(s state, r *rule, n, now int64) (q quota) {
	if used := s.b >> 1; n <= r.Limit-used && lasts(s, r, now) && s.b&1 == 0 {
		return quota{remaining: r.Limit - used, reset: endOf(s, r) + int64(r.Window)*r.Interval - now}
	}
	g := ringOf(s, r, now)
	used := g.used()
	q.remaining = max(0, r.Limit-used)
	if n > q.remaining {
		q.retry = g.timeUntil(g.total()+n-r.Limit) - now
	}
	if used > 0 {
		q.reset = g.timeUntil(g.total()) - now
	}
	return q
}

func (*bucketAlgorithm) charge(s state, r *rule, n, now, generation, _ int64) ratelimit.Receipt {
	if !lasts(s, r, now) {
		g := ringOf(s, r, now)
		g.advance()
	}
	s.b = 2 * (s.b>>1 + n)
	return ratelimit.Receipt{N: n, At: endOf(s, r), Generation: generation}
}

func (*bucketAlgorithm) count(s state, r *rule, interval, now int64) int64 {
	g := ringOf(s, r, now)
	return g.total() - g.before(ceilDiv(interval, r.Interval))
}

// refund subtracts the units from the totals at the beginning of later buckets.
func (*bucketAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now, generations int64) bool {
	g, end := ringOf(s, r, now), endOf(s, r)
	oldest := end + (g.behind-int64(r.Buckets))*r.Interval
	made := c.Generation >= int64(get64(s.words)) && c.Generation <= generations // since this counter began
	if c.N <= 0 || !made || c.At < oldest || c.At > end || (end-c.At)%r.Interval != 0 {
		return false
	}
	back := (end-c.At)/r.Interval + g.behind
	if g.before(back-1)-g.before(back) < c.N {
		return false
	}
	if fits(s, r, now) {
		g.advance()
	}
	total := g.total() - c.N
	for b := range back - g.behind {
		i := g.start(b)
		g.set(i, g.get(i)-c.N)
	}
	s.b = 2 * (total - g.get(g.start(int64(r.Window))))
	if total == g.get(g.start(0)) {
		s.b++
	}
	return true
}

// endOf returns the end of the newest bucket that was charged.
func endOf(s state, r *rule) int64 { return s.until - r.Span }

// lasts reports whether that bucket is the current one.
func lasts(s state, r *rule, now int64) bool { return now < endOf(s, r) }

// wide reports whether a total has two words.
func wide(s state, r *rule) bool { return len(s.words) > ringTotals+1+int(r.Buckets) }

// fits reports whether the ring can hold the current total if the base is subtracted.
func fits(s state, r *rule, now int64) bool {
	g := ringOf(s, r, now)
	return g.total()-g.base() <= g.maxTotal()
}

// ring is the circular list of the totals at the beginning of the buckets.
type ring struct {
	state
	*rule
	behind int64 // the number of buckets from the newest that was charged to the current one
}

func ringOf(s state, r *rule, now int64) ring {
	g := ring{state: s, rule: r}
	if !lasts(s, r, now) {
		g.behind = (now-endOf(s, r))/r.Interval + 1
	}
	return g
}

// size returns the number of totals.
func (g *ring) size() int64 { return int64(g.Buckets) + 1 }

// maxTotal returns the largest total that the ring can hold.
func (g *ring) maxTotal() int64 {
	if wide(g.state, g.rule) {
		return layout.MaxCount
	}
	return math.MaxUint32
}

func (g *ring) get(i int64) int64 {
	if wide(g.state, g.rule) {
		return int64(get64(g.words[ringTotals+2*i:]))
	}
	return int64(g.words[ringTotals+i])
}

func (g *ring) set(i, v int64) {
	if wide(g.state, g.rule) {
		put64(g.words[ringTotals+2*i:], uint64(v))
		return
	}
	g.words[ringTotals+i] = uint32(v)
}

// start returns the index of the total at the beginning of the bucket that is a number of buckets before the newest that
// was charged.
func (g *ring) start(back int64) int64 {
	i := int64(g.words[ringHead]) - back
	if i < 0 {
		i += g.size()
	}
	return i
}

// total returns the current total.
func (g *ring) total() int64 { return g.get(g.start(int64(g.Window))) + g.b>>1 }

// before returns the total at the beginning of the bucket that is a number of buckets before the current one.
func (g *ring) before(back int64) int64 {
	if back < g.behind {
		return g.total()
	}
	return g.get(g.start(back - g.behind))
}

// base returns the total at the beginning of the oldest bucket that can be counted.
func (g *ring) base() int64 { return g.before(int64(g.Buckets)) }

// used returns the number of units in the window that ends with the current bucket.
func (g *ring) used() int64 {
	if g.behind == 0 {
		return g.b >> 1
	}
	return g.total() - g.before(int64(g.Window))
}

// advance makes the current bucket the newest. After a long gap, it replaces the whole list.
func (g *ring) advance() {
	total, used := g.total(), g.used()
	if total > g.maxTotal() {
		base := g.base()
		for i := range g.size() {
			g.set(i, g.get(i)-base)
		}
		total -= base
	}
	head := int64(g.words[ringHead])
	for range min(g.behind, g.size()) {
		if head++; head == g.size() {
			head = 0
		}
		g.set(head, total)
	}
	g.words[ringHead] = uint32(head)
	g.until += g.behind * g.Interval
	g.behind, g.b = 0, 2*used+1
}

// timeUntil returns the time at which all units up to a total of need have left the window. need is at most the current
// total.
func (g *ring) timeUntil(need int64) int64 {
	out := int(g.Window)
	if g.before(0) >= need {
		out = sort.Search(out, func(i int) bool { return g.before(int64(g.Window)-1-int64(i)) >= need })
	}
	return endOf(g.state, g.rule) + (g.behind+int64(out))*g.Interval
}
