package ratelimit

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// MemoryOptions bounds a [MemoryStore].
type MemoryOptions struct {
	// MaxSubjects is the largest number of keys that are remembered. Zero means
	// 100,000.
	MaxSubjects int
	// MaxBytes bounds what they take together, about: counters, keys and an estimate
	// of the map's share. At least 1 MiB. Zero means 128 MiB, enough for 100,000
	// subjects of one default bucket rule.
	MaxBytes int64
	// Clock tells the time. It may go back; counts are then kept longer. Nil means
	// time.Now, read so that setting the machine's clock changes nothing.
	Clock func() time.Time
}

const (
	minBytes = 1 << 20
	// A shard is worth having only if it is large: each evicts by itself.
	subjectsPerShard = 256
	maxShards        = 64
)

// MemoryStore is a [Store] in this process's memory. It is safe for concurrent use. It
// has no goroutine and needs no closing.
//
// It is bounded: when it is full, subjects whose Expiry is over make room, then the one
// that has been idle longest, which begins anew if it comes back. Who can make up keys
// can so make the store forget others; its bounds should exceed the honest callers.
// An op costs a hash, a lock that few other keys share, and no allocation on a known key.
type MemoryStore struct {
	shards []shard // a power of two of them
	seed   maphash.Seed
	lives  atomic.Int64
	clock  func() time.Time
	start  time.Time
}

// NewMemory returns an empty store. An error names the field that is out of range.
func NewMemory(o MemoryOptions) (*MemoryStore, error) {
	o = o.withDefaults()
	if o.MaxSubjects < 1 {
		return nil, fmt.Errorf("ratelimit: MemoryOptions.MaxSubjects is %d, want at least 1", o.MaxSubjects)
	}
	if o.MaxBytes < minBytes {
		return nil, fmt.Errorf("ratelimit: MemoryOptions.MaxBytes is %d, want at least %d", o.MaxBytes, minBytes)
	}
	n := shardCount(o)
	m := &MemoryStore{shards: make([]shard, n), seed: maphash.MakeSeed(), clock: o.Clock, start: o.Clock()}
	for i := range m.shards {
		m.shards[i].init(o.MaxSubjects/n, o.MaxBytes/int64(n), &m.lives)
	}
	return m, nil
}

func (o MemoryOptions) withDefaults() MemoryOptions {
	if o.MaxSubjects == 0 {
		o.MaxSubjects = 100_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 128 << 20
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// shardCount returns the largest power of two that leaves every shard a size.
func shardCount(o MemoryOptions) int {
	n := min(int64(maxShards), int64(o.MaxSubjects/subjectsPerShard), o.MaxBytes/minBytes)
	if n < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// Do runs ops as [Store] says. Its errors are those of [Validate], [ErrOverflow],
// [ErrNoRoom] and the cause of ctx's end.
func (m *MemoryStore) Do(ctx context.Context, ops []Op) ([]Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := Validate(ops); err != nil {
		return nil, err
	}
	out := make([]Result, len(ops))
	for i, group := range Groups(ops) {
		if err := m.group(group, out[i:i+len(group)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DoOne is Do with a list of one, without an allocation on a known key.
func (m *MemoryStore) DoOne(ctx context.Context, op Op) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	ops, out := [1]Op{op}, [1]Result{}
	if err := Validate(ops[:]); err != nil {
		return Result{}, err
	}
	err := m.group(ops[:], out[:])
	return out[0], err
}

// Len returns the number of subjects, among them those whose time is over but whose
// room has not been needed.
func (m *MemoryStore) Len() int {
	var n int
	for i := range m.shards {
		subjects, _ := m.shards[i].size()
		n += subjects
	}
	return n
}

// Bytes returns what counts for MaxBytes.
func (m *MemoryStore) Bytes() int64 {
	var n int64
	for i := range m.shards {
		_, size := m.shards[i].size()
		n += size
	}
	return n
}

func (m *MemoryStore) group(ops []Op, out []Result) error {
	for i := range ops {
		if r := ops[i].Rule; r.pair() == nil {
			return fmt.Errorf("%w: the memory store has no %s yet", ErrOp, r.Algorithm())
		}
	}
	h := maphash.String(m.seed, ops[0].Key)
	// The time is read under the lock, so that it goes forward as the ops do.
	return m.shards[h&uint64(len(m.shards)-1)].group(ops, out, m.now)
}

// now returns the time in microseconds. Counted from the store's start it follows the
// monotonic clock, if the clock has one.
func (m *MemoryStore) now() int64 {
	return m.start.UnixMicro() + m.clock().Sub(m.start).Microseconds()
}
