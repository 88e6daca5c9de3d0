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
	hash      uint64 // of what tells the rule's counters from others
	now       int64  // of a test's clock, 0 for the server's
	args      []any  // the rule, as its algorithm's script reads it
	blockArgs []any  // its block, as group.lua reads it

	limit, burst, per int64

	takes redispipe.Batch
}

// ruleCache has the arguments of the rules that are in use, which are few. Before there are more
// than maxRules, such as with limits made up for each call, it is emptied.
type ruleCache struct {
	mu   sync.RWMutex
	args map[ruleKey]*ruleArgs
}

type ruleKey struct {
	rule ratelimit.Rule
	now  int64
}

const maxRules = 1000

// ruleArgs returns the arguments of a rule, the same ones each time; nil if there is no script
// for it.
func (s *Store) ruleArgs(r ratelimit.Rule) *ruleArgs {
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
		a.args = []any{a.limit, r.Interval().Microseconds(), int64(r.Span()/r.Interval()) + 1, buckets(r.Per(), r), milliseconds(ttl)}
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
		Join:   r.Algorithm() != "log", // whose takes are an event each
	}
	return a
}

// receiptCounter returns the Counter of the receipts of a key.
func (a *ruleArgs) receiptCounter(key string) uint64 { return fnv1a(a.hash, key) }

// fnv1a goes on with a hash of 64 bits, FNV-1a. It is the same in each process.
func fnv1a(hash uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		hash = (hash ^ uint64(s[i])) * prime
	}
	return hash
}

// buckets returns how many buckets before the newest an interval touches.
func buckets(d time.Duration, r ratelimit.Rule) int64 {
	return int64((d + r.Interval() - 1) / r.Interval())
}

func inMicroseconds(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
