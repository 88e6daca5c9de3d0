package redisstore

import (
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// ruleArgs holds a rule's script arguments and how to decode the scripts' replies.
type ruleArgs struct {
	algorithm *algorithm
	counter   string // see counterName
	block     string // see blockName
	hash      uint64 // identifies the rule's counters
	now       int64  // of a test's clock, 0 for the server's
	args      []any  // the rule, in the form that its algorithm's script reads
	blockArgs []any  // its block, in the form that group.lua reads

	limit, burst, per int64

	takes redispipe.Batch
}

// ruleCache holds the arguments of the rules in use, which are few. When it has maxRules of them, for
// instance because each call makes up a limit, it is emptied.
type ruleCache struct {
	mu   sync.RWMutex
	args map[ruleKey]*ruleArgs
}

type ruleKey struct {
	rule ratelimit.Rule
	now  int64
}

const maxRules = 1000

// ruleArgsFor returns the cached arguments of a rule, or nil if no script supports it.
func (s *Store) ruleArgsFor(r ratelimit.Rule) *ruleArgs {
	key, c := ruleKey{rule: r}, &s.rules
	if s.clock != nil {
		key.now = s.clock().UnixMicro()
	}
	c.mu.RLock()
	a := c.args[key]
	c.mu.RUnlock()
	if a != nil {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a = c.args[key]; a == nil {
		if c.args == nil || len(c.args) >= maxRules {
			c.args = make(map[ruleKey]*ruleArgs)
		}
		a = s.newRuleArgs(key)
		c.args[key] = a
	}
	return a
}

func (s *Store) newRuleArgs(key ruleKey) *ruleArgs {
	r := key.rule
	a := &ruleArgs{
		algorithm: algorithmOf(r), counter: counterName(r), block: blockName(r), now: key.now,
		limit: r.Limit(), burst: r.Burst(), per: r.Per().Microseconds(),
	}
	if a.algorithm == nil {
		return nil
	}
	const offset = 14695981039346656037
	a.hash = fnv1a(offset, s.prefix+a.counter+"\x00")
	switch a.algorithm.name {
	case "buckets":
		ttl := max(r.Expiry(), r.Span()+r.Interval())
		a.args = []any{a.limit, r.Interval().Microseconds(), int64(r.Span()/r.Interval()) + 1, bucketCount(r.Per(), r), milliseconds(ttl)}
	case "gcra":
		a.args = []any{a.limit, a.per, a.burst}
	default:
		a.args = []any{a.limit, a.per}
	}
	a.blockArgs = []any{r.Block().After, a.per, r.Block().For.Microseconds()}
	a.takes = redispipe.Batch{
		Script: s.scripts.takes[a.algorithm.name],
		Args:   append([]any{key.now}, a.args...),
		Width:  1 + a.algorithm.width,
		Max:    s.batch,
		Join:   r.Algorithm() != "log", // each take of a log is an event
	}
	return a
}

// receiptCounter returns the Counter of the receipts of a key.
func (a *ruleArgs) receiptCounter(key string) uint64 { return fnv1a(a.hash, key) }

// fnv1a extends a 64-bit FNV-1a hash, which is the same in every process.
func fnv1a(hash uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		hash = (hash ^ uint64(s[i])) * prime
	}
	return hash
}

// bucketCount returns the number of buckets before the newest that an interval touches.
func bucketCount(d time.Duration, r ratelimit.Rule) int64 {
	return int64((d + r.Interval() - 1) / r.Interval())
}

func inMicroseconds(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
