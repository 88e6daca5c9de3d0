// Package memstore keeps counters in the memory of this process.
package memstore

import (
	"cmp"
	"context"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// MaxKeys is the maximum number of counters. A key has a counter for each rule that has charged it, and another
	// for each Block that counts its denials. The zero value means 100,000.
	MaxKeys int
	// MaxBytes is the maximum memory for the counters, including free slots. It must be at least 1 MiB. The zero value
	// means 128 MiB, which is enough for 100,000 counters of the default bucket rule.
	MaxBytes int64
	// WhenFull says what happens to new counters when the store is full. The zero value means EvictNearestFull.
	WhenFull WhenFull
	// Clock returns the time, at most 290 years after its first call, by New. If the time goes back, counts are kept
	// longer. But a counter whose quota was full again for 10 seconds may have been forgotten. Nil means this machine's
	// monotonic clock, which does not follow corrections of the system's clock. A Calendar on a machine that sleeps
	// needs a clock that does, such as time.Now().Round(0).
	Clock func() time.Time
}

// WhenFull is the behavior of a full [Store] towards new counters.
type WhenFull uint8

const (
	// EvictNearestFull forgets the counter that will have its full quota again first. A store with more than 500
	// counters chooses from a sample of at least 32. A client that can invent keys makes the store forget other
	// clients, so the bounds should exceed the number of honest clients.
	EvictNearestFull WhenFull = iota
	// DenyNew denies takes that would make a new counter or let a log grow. RetryAfter is the time until a
	// counter from such a sample can be forgotten. An Add returns [ratelimit.ErrNoRoom], and a new Block does not
	// begin. A client that can invent keys locks out new clients, but does not escape its limit.
	DenyNew
)

const (
	minBytes = 1 << 20 // of a store, and of each shard
	// keysPerShard is the minimum size of the shards if there are several. Each shard chooses only from its own counters
	// when it evicts, and so a small shard would choose badly.
	keysPerShard = 256
	maxShards    = 64
)

// Store is a [ratelimit.Store] in this process's memory. It is safe for concurrent use. It has no goroutine
// and needs no closing.
//
// A counter takes 37 to 47 bytes. A GCRA, a fixed window and the denials of a Block need no more. Each bucket takes
// 4 to 5 additional bytes, or 8 to 10 if the counter has more than 2^32 units, and each event of a log takes 8 to 15.
// The store does not keep keys: it identifies a counter by 63 bits of a keyed hash. With a million counters, the
// probability that any two are confused is about 5·10⁻⁸.
//
// A full store first forgets counters whose quota is full again, and then does what [WhenFull] says. It ignores that
// refunds fill the quota of buckets and windows earlier, and keeps buckets until all units have left the Span.
type Store struct {
	shards []shard // a power of two of them
	seed   maphash.Seed
	clock  func() time.Time // nil for time.Now
	start  time.Time
	begin  int64 // start in microseconds
}

var _ ratelimit.Store = (*Store)(nil)

// New returns an empty store. It returns an [*option.Error] if an option is out of range.
func New(o Options) (*Store, error) {
	o.MaxKeys, o.MaxBytes = cmp.Or(o.MaxKeys, 100_000), cmp.Or(o.MaxBytes, 128<<20)
	switch {
	case o.MaxKeys < 1:
		return nil, option.Errorf("memstore", "Options.MaxKeys", "is %d, want at least 1", o.MaxKeys)
	case o.MaxBytes < minBytes:
		return nil, option.Errorf("memstore", "Options.MaxBytes", "is %d, want at least %d", o.MaxBytes, minBytes)
	case o.WhenFull > DenyNew:
		return nil, option.Errorf("memstore", "Options.WhenFull", "is %d, want EvictNearestFull or DenyNew", o.WhenFull)
	}
	n := shardCount(o)
	m := &Store{shards: make([]shard, n), seed: maphash.MakeSeed(), clock: o.Clock, start: time.Now()}
	if o.Clock != nil {
		m.start = o.Clock()
	}
	m.begin = m.start.UnixMicro()
	for i := range m.shards {
		s := &m.shards[i]
		s.maxUsed, s.maxBytes, s.denies = o.MaxKeys/n, o.MaxBytes/int64(n), o.WhenFull == DenyNew
	}
	return m, nil
}

// shardCount returns the largest power of two that leaves each shard large enough.
func shardCount(o Options) int {
	n := min(int64(maxShards), int64(o.MaxKeys/keysPerShard), o.MaxBytes/minBytes)
	if n < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// Do implements [ratelimit.Store]. It returns the errors of [storage.Validate], [ratelimit.ErrOverflow],
// [ratelimit.ErrNoRoom], and the cause of the end of ctx.
func (m *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := storage.Validate(ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	for i, group := range storage.Groups(ops) {
		if err := m.runGroup(group, out[i:i+len(group)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DoOne is Do for a single op. It does not allocate for a known key, unless a log grows.
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
	ops, out := [1]ratelimit.Op{op}, [1]ratelimit.Result{}
	if err = storage.Validate(ops[:]); err == nil {
		err = m.runGroup(ops[:], out[:])
	}
	return out[0], err
}

func (m *Store) runGroup(ops []ratelimit.Op, out []ratelimit.Result) error {
	key := maphash.String(m.seed, ops[0].Key)
	return m.shardFor(key).do(ops, out, key, m.now())
}

// Len returns the number of counters. It includes counters whose quota is full again, until they are forgotten.
func (m *Store) Len() int {
	var n int
	for i := range m.shards {
		used, _ := m.shards[i].size()
		n += used
	}
	return n
}

// Bytes returns the memory that counts towards MaxBytes.
func (m *Store) Bytes() int64 {
	var n int64
	for i := range m.shards {
		_, size := m.shards[i].size()
		n += size
	}
	return n
}

func (m *Store) shardFor(key uint64) *shard { return &m.shards[key&uint64(len(m.shards)-1)] }

// now returns the time in microseconds. Sub uses the monotonic reading of the clock if there is one.
func (m *Store) now() int64 {
	if m.clock == nil {
		return m.begin + time.Since(m.start).Microseconds()
	}
	return m.begin + m.clock().Sub(m.start).Microseconds()
}
