package redisstore

import "github.com/lazyreq/lazyreq/ratelimit"

// series is the results of equal takes, one after another at one moment: as they are
// equal, the first so many of them are allowed, and the rest are denied.
type series struct {
	passed int
	last   ratelimit.Result // of the last take that is allowed, if one is
	denied ratelimit.Result // of those that are denied, if one is
	// raise is what each charge of a GCRA raised its level by: n × Per in microseconds. It
	// is 0 for rules whose charges of one moment have the same At and Life.
	raise int64
}

// result returns the result of take i, the first of which is 0. It has no say in how many
// there were.
func (s *series) result(i int) ratelimit.Result {
	if i >= s.passed {
		return s.denied
	}
	res, before := s.last, int64(s.passed-1-i)
	if before == 0 {
		return res
	}
	res.Remaining += before * res.Receipt.N
	res.RetryAfter = 0 // there was a unit, since others took it
	if s.raise > 0 {
		level := res.Receipt.Life - before*s.raise
		res.ResetAfter += microseconds(ceilDiv(level, res.Limit)) - microseconds(ceilDiv(res.Receipt.Life, res.Limit))
		res.Receipt.Life = level
	}
	return res
}
