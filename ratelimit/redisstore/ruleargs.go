package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ruleArgs holds the script arguments of a rule and an interval.
type ruleArgs struct {
	*storage.Layout
	algorithm *algorithm
	counter   string // see counterName
	block     string // like counter, for the key that counts the block's denials; "" without a block
	hash      uint64 // identifies the rule's counters
	now       int64  // the time of the test's clock, or 0 to use the server's clock
	args      []any  // the rule's arguments for its algorithm's script
	blockArgs []any  // the block's arguments for group.lua

	batches [ratelimit.Count + 1]redispipe.Batch // by the kind of the op
}

// ruleCache holds the arguments of the rules in use. Usually there are few rules. When the cache has maxRules entries, for
// example because every call has a different limit, it is emptied.
type ruleCache struct {
	mu   sync.RWMutex
	args map[ruleKey]*ruleArgs
}

type ruleKey struct {
	rule     ratelimit.Rule
	interval time.Duration
	now      int64
	window   int64 // the beginning of the calendar's window by this machine's clock, in microseconds
}

const maxRules = 1000

// ruleArgsFor returns the arguments of an op's rule from the cache.
func (s *Store) ruleArgsFor(op *ratelimit.Op) *ruleArgs {
	key, c := ruleKey{rule: op.Rule, interval: op.Interval}, &s.rules
	if s.clock != nil {
		key.now = s.clock().UnixMicro()
	}
	if l := op.Rule.Layout(); l.Period != 0 {
		key.window, _ = l.CalendarWindow(s.wall().UnixMicro())
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
	l := key.rule.Layout()
	a := &ruleArgs{Layout: l, algorithm: algorithmOf(l), now: key.now, counter: counterName(key.rule)}
	if l.BlockAfter > 0 {
		a.block = fmt.Sprintf("%s:block:%d/%v", a.counter, l.BlockAfter, key.rule.Block().For)
	}
	const offset = 14695981039346656037
	a.hash = fnv1a(offset, s.prefix+a.counter+"\x00")
	a.args = ruleNumbers(l, key.window)
	a.blockArgs = []any{l.BlockAfter, l.Per, l.BlockFor}
	a.makeBatches(s, key)
	return a
}

// algorithmOf returns the algorithm of a rule.
func algorithmOf(l *storage.Layout) *algorithm {
	switch {
	case l.Stream:
		return algorithms["stream"]
	case l.Period != 0:
		return algorithms["calendar"]
	}
	return algorithms[l.Algorithm.String()]
}

// ruleNumbers returns the numbers of a rule as its algorithm's script reads them. window is the beginning of the calendar's
// present window.
func ruleNumbers(l *storage.Layout, window int64) []any {
	switch {
	case l.Period != 0:
		before, _ := l.CalendarWindow(window - 1)
		end := l.WindowEnd(window)
		return []any{l.Limit, before, window, end, l.WindowEnd(end)}
	case l.Algorithm == storage.Buckets:
		ttl := max(l.Expiry, l.Span+l.Interval)
		return []any{l.Limit, l.Interval, l.Span/l.Interval + 1, ceilDiv(l.Per, l.Interval), ceilDiv(ttl, 1000)}
	case l.Algorithm == storage.GCRA:
		return []any{l.Limit, l.Per, l.Burst}
	}
	return []any{l.Limit, l.Per}
}

// makeBatches makes the batches in which ops with this rule share script calls. Equal ops on the same key are joined into a
// single entry of a call, with two exceptions: each charge of a log must be an event of its own, and the report on several
// adds with a limit would not contain the time of the next unit after the first add.
func (a *ruleArgs) makeBatches(s *Store, key ruleKey) {
	args := append([]any{key.now}, a.args...)
	l := key.rule.Layout()
	counting := append(slices.Clone(args), intervalArg(l, key.interval))
	isLog := l.Algorithm == storage.Log
	batch := func(kind ratelimit.Kind, args []any, width int, join bool) {
		a.batches[kind] = redispipe.Batch{Script: s.scripts.ops[kind][a.algorithm.name], Args: args, Width: width, Max: s.batch, Join: join}
	}
	batch(ratelimit.Take, args, 1+a.algorithm.width, !isLog)
	batch(ratelimit.Peek, args, 1+a.algorithm.width, true)
	batch(ratelimit.Count, counting, 1, true)
	batch(ratelimit.Add, counting, 2+a.algorithm.width, !isLog && a.Limit == 0)
}

// fnv1a extends a 64-bit FNV-1a hash by a string. Unlike those of maphash, its results are the same in every process.
func fnv1a(hash uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		hash = (hash ^ uint64(s[i])) * prime
	}
	return hash
}

// intervalArg returns an op's interval as the scripts read it: for buckets, the number of buckets before the newest, and
// otherwise microseconds.
func intervalArg(l *storage.Layout, d time.Duration) int64 {
	interval := layout.Micros(d)
	if d == 0 {
		interval = l.Per
	}
	if l.Interval > 0 {
		return ceilDiv(interval, l.Interval)
	}
	return interval
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// braces escapes the closing braces of a subject, which would end the hash tag of its keys. A Cluster ignores an empty hash
// tag, and would put the subject's counters into different slots.
var braces = strings.NewReplacer("%", "%25", "}", "%7D")

// counterKey returns the key of a subject's counter.
func (s *Store) counterKey(subject string, counter string) string {
	if strings.ContainsAny(subject, "%}") {
		subject = braces.Replace(subject)
	}
	return s.prefix + "{" + subject + "}:" + counter
}

// counterName returns the last part of the keys of a rule's counters. Two rules have the same name if and only if they share
// their counters. So the name does not contain the limit, the expiry or the block.
func counterName(r ratelimit.Rule) string {
	l := r.Layout()
	name := algorithmOf(l).name + ":"
	if l.Concurrent {
		name = "concurrent:"
	}
	if l.Named {
		name += l.Name + ":"
	}
	switch {
	case l.Period != 0:
		name += l.Period.String() + "/" + l.Location.String()
	case l.Named || l.Concurrent:
		name += r.Per().String()
	default:
		name += l.Name // derived from the Per
	}
	if derived := l.Span == l.Per && l.Buckets == 20; l.Interval > 0 && !derived {
		name += "/" + r.Interval().String()
		if l.Span != l.Per {
			name += "/" + r.Span().String()
		}
	}
	return name
}
