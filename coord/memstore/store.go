// Package memstore stores tokens and leases in the memory of a process.
package memstore

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/option"
)

// Options configures a [Store]. The zero value means the defaults.
type Options struct {
	// MaxBytes is the maximum memory of tokens and leases together. A token or user counts 512 bytes, and the bytes
	// of its metadata and names. Default: 64 MiB.
	MaxBytes int64
}

const bytesPerRecord = 512

// Store is a [coord.TokenStore] and a [coord.LeaseStore] for a single process and for tests. It evicts nothing,
// because an evicted token or lease could be granted again. A full store refuses new tokens and leases with
// [ErrFull]. Each call removes the tokens and leases that have expired. The store is safe for concurrent use, starts
// no goroutine and needs no closing.
//
// A fencing number is the time in µs, or the last number plus 1 if that is larger. The numbers grow as long as the
// Store exists, even if the clock goes back.
type Store struct {
	maxBytes int64

	mu        sync.Mutex
	tokens    map[coord.TokenKey]*token
	leases    map[string]*lease
	records   recordHeap
	bytes     int64
	minNumber int64 // the largest fencing number of a forgotten user
}

// ErrFull is returned for a new token or user if the store is full. The error also wraps coord.ErrStore.
var ErrFull = errors.New("memstore: full")

var (
	_ coord.TokenStore = (*Store)(nil)
	_ coord.LeaseStore = (*Store)(nil)
)

// New returns an empty store. It returns an error if an option is out of range.
func New(o Options) (*Store, error) {
	if o.MaxBytes < 0 {
		return nil, option.Errorf("memstore", "Options.MaxBytes", "is %d, want at least 0", o.MaxBytes)
	}
	return &Store{
		maxBytes: cmp.Or(o.MaxBytes, 64<<20),
		tokens:   make(map[coord.TokenKey]*token),
		leases:   make(map[string]*lease),
	}, nil
}

// Len returns the number of tokens and users, including expired ones that no call has removed yet.
func (m *Store) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tokens) + len(m.leases)
}

// lock locks m.mu, removes expired records and returns the time. If ctx has ended, it returns an error and locks
// nothing.
func (m *Store) lock(ctx context.Context) (now time.Time, err error) {
	if ctx.Err() != nil {
		return now, context.Cause(ctx)
	}
	m.mu.Lock()
	now = time.Now()
	for len(m.records) > 0 && !now.Before(m.records[0].expires) {
		r := heap.Pop(&m.records).(*record)
		m.bytes -= r.bytes
		r.remove()
	}
	return now, nil
}

// addLocked adds a record. bytes is the number of bytes of its metadata and names.
func (m *Store) addLocked(r *record, bytes int) error {
	r.bytes = int64(bytes) + bytesPerRecord
	if m.bytes+r.bytes > m.maxBytes {
		return fmt.Errorf("%w: %w", coord.ErrStore, ErrFull)
	}
	m.bytes += r.bytes
	heap.Push(&m.records, r)
	return nil
}

// growLocked adds bytes to the size of a record. It may exceed MaxBytes, because changes of records are never
// refused.
func (m *Store) growLocked(r *record, bytes int) {
	r.bytes += int64(bytes)
	m.bytes += int64(bytes)
}

// expireLocked sets the time at which a record expires.
func (m *Store) expireLocked(r *record, at time.Time) {
	r.expires = at
	heap.Fix(&m.records, r.index)
}

// record is the common part of tokens and leases.
type record struct {
	expires time.Time
	bytes   int64
	index   int    // the record's index in Store.records
	remove  func() // removes the record from the store's map
}

// recordHeap is a [heap.Interface] ordered by expiry.
type recordHeap []*record

func (h recordHeap) Len() int           { return len(h) }
func (h recordHeap) Less(i, k int) bool { return h[i].expires.Before(h[k].expires) }

func (h recordHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

// Push implements [heap.Interface].
func (h *recordHeap) Push(x any) {
	r := x.(*record)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements [heap.Interface].
func (h *recordHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
