package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// MaxSubjects is the largest number of counters that are remembered. A key has one
	// for each rule that charged it, and one for each Block whose denials add up or
	// that lasts. Zero means 100,000.
	MaxSubjects int
	// MaxBytes bounds what they take together, free places for the next ones included.
	// At least 1 MiB. Zero means 128 MiB, enough for 100,000 default bucket rules.
	MaxBytes int64
	// WhenFull is what becomes of new counters when there is no more room. Zero means
	// EvictNearestFull.
	WhenFull WhenFull
	// Clock returns the time. It may go back; counts are then kept longer. Nil means
	// time.Now, read so that setting the machine's clock changes nothing.
	Clock func() time.Time
}

// WhenFull is what a [Store] does without room for a new counter.
type WhenFull uint8

const (
	// EvictNearestFull forgets the counter that equals a fresh one soonest, the one
	// nearest to full quota. In a small store that is exact, in one of more than 500
	// subjects it is the best of 32 or more. A client that can make up keys makes
	// the store forget others; its bounds should exceed the number of honest callers.
	EvictNearestFull WhenFull = iota
	// DenyNew denies takes that would make a new counter, or let a log grow; RetryAfter
	// is then when one of 32 or more others will be forgotten. An Add is
	// [ratelimit.ErrNoRoom]. A Block for which there is no room doesn't begin. A client that can
	// make up keys shuts out newcomers, but does not escape its limit.
	DenyNew
)

const (
	minBytes = 1 << 20
	// A shard is worth having only if it is large: each evicts by itself.
	subjectsPerShard = 256
	maxShards        = 64
)

// Store is a [ratelimit.Store] in this process's memory. It is safe for concurrent use. It
// has no goroutine and needs no closing.
//
// A counter takes 37 to 47 bytes, which is all for GCRA and FixedWindow, windows of a
// Block included; a bucket takes 4 to 5 more, or 8 to 10 if there are more than 2^32
// units, and an event of a log 8 to 15. Keys are not kept: a counter is known by 63 bits of
// a hash with a secret of the store's. That two counters of a million are taken for one
// has a chance of 5 in 10^8.
//
// The store is bounded. Counters that equal fresh ones make room first, then it does what
// [WhenFull] says. An op costs a hash, a lock that few other keys share, and no
// allocation, except that tables, and logs, grow.
type Store struct {
	shards []shard // a power of two of them
	seed   maphash.Seed
	clock  func() time.Time // nil for the time since start
	start  time.Time
	begin  int64 // start in microseconds
}

var _ ratelimit.Store = (*Store)(nil)

// New returns an empty store. An error names the field that is out of range.
func New(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.MaxSubjects < 1 {
		return nil, fmt.Errorf("memstore: Options.MaxSubjects is %d, want at least 1", o.MaxSubjects)
	}
	if o.MaxBytes < minBytes {
		return nil, fmt.Errorf("memstore: Options.MaxBytes is %d, want at least %d", o.MaxBytes, minBytes)
	}
	if o.WhenFull > DenyNew {
		return nil, fmt.Errorf("memstore: Options.WhenFull is %d, want EvictNearestFull or DenyNew", o.WhenFull)
	}
	n := shardCount(o)
	m := &Store{shards: make([]shard, n), seed: maphash.MakeSeed(), clock: o.Clock, start: time.Now()}
	if o.Clock != nil {
		m.start = o.Clock()
	}
	m.begin = m.start.UnixMicro()
	for i := range m.shards {
		s := &m.shards[i]
		s.maxUsed, s.maxBytes, s.denies = o.MaxSubjects/n, o.MaxBytes/int64(n), o.WhenFull == DenyNew
	}
	return m, nil
}

func (o Options) withDefaults() Options {
	if o.MaxSubjects == 0 {
		o.MaxSubjects = 100_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 128 << 20
	}
	return o
}

// shardCount returns the largest power of two that leaves every shard a size.
func shardCount(o Options) int {
	n := min(int64(maxShards), int64(o.MaxSubjects/subjectsPerShard), o.MaxBytes/minBytes)
	if n < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// Do runs ops as [ratelimit.Store] says. Its errors are those of [storage.Validate],
// [ratelimit.ErrOverflow], [ratelimit.ErrNoRoom] and the cause of ctx's end.
func (m *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := storage.Validate(ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	for i, group := range storage.Groups(ops) {
		if err := m.doGroup(group, out[i:i+len(group)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DoOne is Do with a list of one, without an allocation on a known key.
func (m *Store) DoOne(ctx context.Context, op ratelimit.Op) (res ratelimit.Result, err error) {
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	r := ruleFor(&op)
	if op.Kind == ratelimit.Take && op.Prepaid == 0 && r.BlockAfter == 0 && 1 <= op.N && op.N <= r.Burst && 1 <= len(op.Key) && len(op.Key) <= ratelimit.MaxKeyLen {
		hash := maphash.String(m.seed, op.Key)
		if m.shardFor(hash).take(r, op.N, &res, hash, m.now()) {
			return res, nil
		}
	}
	return m.doGroupOfOne(ctx, []ratelimit.Op{op})
}

func (m *Store) doGroupOfOne(ctx context.Context, ops []ratelimit.Op) (ratelimit.Result, error) {
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	if err := storage.Validate(ops); err != nil {
		return ratelimit.Result{}, err
	}
	var out [1]ratelimit.Result
	err := m.doGroup(ops, out[:])
	return out[0], err
}

// Len returns the number of counters, among them those that equal fresh ones but whose
// room has not been needed.
func (m *Store) Len() int {
	var n int
	for i := range m.shards {
		used, _ := m.shards[i].size()
		n += used
	}
	return n
}

// Bytes returns what counts for MaxBytes.
func (m *Store) Bytes() int64 {
	var n int64
	for i := range m.shards {
		_, size := m.shards[i].size()
		n += size
	}
	return n
}

func (m *Store) doGroup(ops []ratelimit.Op, out []ratelimit.Result) error {
	key := maphash.String(m.seed, ops[0].Key)
	return m.shardFor(key).do(ops, out, key, m.now())
}

func (m *Store) shardFor(key uint64) *shard { return &m.shards[key&uint64(len(m.shards)-1)] }

// now returns the time in microseconds. Counted from the store's start it follows the
// monotonic clock, if the clock has one.
func (m *Store) now() int64 {
	if m.clock == nil {
		return m.begin + time.Since(m.start).Microseconds()
	}
	return m.begin + m.clock().Sub(m.start).Microseconds()
}
