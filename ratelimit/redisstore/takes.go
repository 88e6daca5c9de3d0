package redisstore

import (
	"math/bits"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// The bytes of a reply for each key of a list, which lists.lua and the algorithm's file of
// takes describe.
const (
	wordBytes   = 7
	passedBytes = 4

	gcraBytes   = wordBytes + passedBytes + 4 + 2*wordBytes
	windowBytes = wordBytes + passedBytes + 4 + 3*wordBytes
	answerBytes = passedBytes + 6*wordBytes // of buckets and logs
)

// What was done to a key at all, in place of how many takes passed.
const (
	foreignPassed  = 1<<32 - 1
	overflowPassed = 1<<32 - 2
)

// reader returns what takes of n got. series.passed may be one of the two above.
type reader func(reply string, t *told, n int64) series

var readers = map[string]reader{"gcra": readGCRA, "window": readWindow, "buckets": readAnswer, "log": readAnswer}

// word returns the number in the seven bytes from at on.
func word(s string, at int) int64 {
	s = s[at : at+wordBytes]
	return int64(s[0]) | int64(s[1])<<8 | int64(s[2])<<16 | int64(s[3])<<24 | int64(s[4])<<32 | int64(s[5])<<40 | int64(s[6])<<48
}

// passed returns the number in the four bytes from at on.
func passed(s string, at int) int {
	s = s[at : at+passedBytes]
	return int(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// readGCRA works out what gcra in gcra.lua does, from the counter.
func readGCRA(reply string, t *told, n int64) series {
	now, at, level := word(reply, 0), word(reply, 15), word(reply, 22)
	left, behind := level, max(0, at-now)
	if now > at {
		high, fallen := bits.Mul64(uint64(now-at), uint64(t.limit))
		if left -= int64(fallen); high != 0 || fallen > uint64(level) {
			left = 0
		}
	}
	free := t.burst*t.per - left
	until := func(n int64) time.Duration { return microseconds(behind + ceilDiv(n*t.per-free, t.limit)) }
	last := ratelimit.Result{Allowed: true, Limit: t.limit, Remaining: max(0, free) / t.per}
	if left > 0 {
		last.ResetAfter = microseconds(behind + ceilDiv(left, t.limit))
	}
	denied := violated(last, until(n))
	if last.Remaining == 0 {
		last.RetryAfter = until(1)
	}
	last.Receipt = ratelimit.Receipt{N: n, At: at, Life: level}
	return series{passed: passed(reply, wordBytes), last: last, denied: denied, raise: n * t.per}
}

// readWindow works out what check in window.lua does, from the counter.
func readWindow(reply string, t *told, n int64) series {
	now, life, ends, used := word(reply, 0), word(reply, 15), word(reply, 22), word(reply, 29)
	wait := microseconds(ends - now)
	last := ratelimit.Result{Allowed: true, Limit: t.limit, Remaining: max(0, t.limit-used)}
	if used > 0 {
		last.ResetAfter = wait
	}
	denied := violated(last, wait)
	if last.Remaining == 0 {
		last.RetryAfter = wait
	}
	last.Receipt = ratelimit.Receipt{N: n, At: ends, Life: life}
	return series{passed: passed(reply, wordBytes), last: last, denied: denied}
}

// readAnswer reads what put_all in lists.lua puts.
func readAnswer(reply string, t *told, n int64) series {
	number := func(i int) int64 { return word(reply, passedBytes+i*wordBytes) }
	last := ratelimit.Result{Allowed: true, Limit: t.limit, Remaining: number(0), ResetAfter: microseconds(number(3))}
	denied := violated(last, microseconds(number(2)))
	last.RetryAfter = microseconds(number(1))
	last.Receipt = ratelimit.Receipt{N: n, At: number(4), Life: number(5)}
	return series{passed: passed(reply, 0), last: last, denied: denied}
}

// violated returns the result of a take that was denied where that of last leaves things.
func violated(last ratelimit.Result, retry time.Duration) ratelimit.Result {
	last.Allowed, last.Violated, last.RetryAfter = false, true, retry
	return last
}
