package ratelimit

import "sort"

// bucketPair counts in running totals. Its state is
//
//	epoch  the number of the newest bucket: time / interval. It never goes back, so a
//	       clock that does charges the newest bucket, and nothing is lost.
//	total  units charged so far
//	life   which life of the counter this is
//	ring   for each of the newest span/interval + 1 buckets, the total as it began
//
// which is span/interval + 4 words. The units of a bucket and all after it are the total
// minus one entry of the ring, so a count of any interval costs the same; and as the ring
// never falls from older to newer, the moment when units age out is a binary search.
type bucketPair struct{}

const (
	epoch = iota
	total
	life
	ring
)

func (bucketPair) size(r Rule) int64 { return ring + r.buckets() + 1 }

func (p bucketPair) fresh(r Rule, now, lifeNumber int64) state {
	s := make(state, p.size(r))
	s[epoch] = floorDiv(now, r.interval)
	s[life] = lifeNumber
	return s
}

// check counts over Per: the current bucket and as many before it as touch the interval.
func (bucketPair) check(s state, r Rule, n, now int64) Result {
	if r.limit == 0 {
		return Result{Allowed: true}
	}
	s.advance(r, now)
	v := s.view()
	back := ceilDiv(r.per, r.interval)
	used := s[total] - v.began(back)
	res := Result{Limit: r.limit, Remaining: max(0, r.limit-used)}
	res.Allowed = n <= res.Remaining
	if !res.Allowed {
		res.RetryAfter = micros(v.until(r, back, s[total]+n-r.limit, now))
	}
	if used > 0 {
		res.ResetAfter = micros(v.until(r, back, s[total], now))
	}
	return res
}

func (bucketPair) fits(s state, r Rule, n, now int64) bool {
	s.advance(r, now)
	return n <= maxCount-(s[total]-s.view().began(r.buckets()))
}

func (bucketPair) charge(s state, r Rule, n, now int64) (state, Receipt) {
	s.advance(r, now)
	if n > maxCount-s[total] {
		s.rebase(r)
	}
	s[total] += n
	return s, Receipt{N: n, At: s[epoch], Life: s[life]}
}

func (bucketPair) count(s state, r Rule, interval, now int64) int64 {
	s.advance(r, now)
	return s[total] - s.view().began(ceilDiv(interval, r.interval))
}

// refund takes the units out of their bucket, so the totals at which the later ones
// began fall too.
func (bucketPair) refund(s state, r Rule, c Receipt, now int64) bool {
	s.advance(r, now)
	v := s.view()
	back := s[epoch] - c.At
	if c.N <= 0 || c.Life != s[life] || back < 0 || back > r.buckets() {
		return false
	}
	if v.began(back-1)-v.began(back) < c.N {
		return false
	}
	for b := back - 1; b >= 0; b-- {
		*v.entry(b) -= c.N
	}
	s[total] -= c.N
	return true
}

func (r Rule) buckets() int64 { return r.span / r.interval }

// advance begins the buckets up to now's; a gap of more than a lap begins them all.
func (s state) advance(r Rule, now int64) {
	newest := floorDiv(now, r.interval)
	if newest <= s[epoch] {
		return
	}
	entries := s[ring:]
	steps := min(newest-s[epoch], int64(len(entries)))
	s[epoch] = newest
	for i, at := steps, s.view().head; i > 0; i-- {
		entries[at] = s[total]
		if at--; at < 0 {
			at += int64(len(entries))
		}
	}
}

// rebase makes the totals as small as they can be.
func (s state) rebase(r Rule) {
	base := s.view().began(r.buckets())
	s[total] -= base
	for i := range s[ring:] {
		s[ring+i] -= base
	}
}

// ringView addresses the ring by age: 0 is the newest bucket.
type ringView struct {
	s    state
	head int64
}

func (s state) view() ringView {
	n := int64(len(s) - ring)
	head := s[epoch] % n
	if head < 0 {
		head += n
	}
	return ringView{s, head}
}

func (v ringView) entry(back int64) *int64 {
	i := v.head - back
	if i < 0 {
		i += int64(len(v.s) - ring)
	}
	return &v.s[ring+i]
}

// began returns the total as the bucket began that is back before the newest; the one
// after the newest begins with all that there is.
func (v ringView) began(back int64) int64 {
	if back < 0 {
		return v.s[total]
	}
	return *v.entry(back)
}

// until returns the time to the end of the bucket after which the window of back+1
// buckets begins with at least need charged before it. It is always within reach: the
// caller's need is at most the total.
func (v ringView) until(r Rule, back, need, now int64) int64 {
	out := sort.Search(int(back), func(i int) bool { return v.began(back-1-int64(i)) >= need })
	return (v.s[epoch]+1+int64(out))*r.interval - now
}
