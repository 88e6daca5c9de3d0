package memstore

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// Options bound a [Store]. The zero value is usable.
type Options struct {
	// MaxBytes is how much memory tokens and leases may take together. Counted are the
	// bytes of metadata and names, and 512 for each token and user. Default: 64 MiB.
	MaxBytes int
}

const (
	defaultMaxBytes = 64 << 20
	bytesPerRecord  = 512
)

// Store is a [coord.TokenStore] and a [coord.LeaseStore] in this process, for one that is alone, and
// for tests. It never evicts: when it is full, what is new is refused with ErrFull, because
// a token or a lease that it forgot could be had again. What is over leaves with later
// calls. It starts no goroutine, needs no closing, and its content ends with the process.
//
// Fencing numbers are as those of [Redis], and grow as long as the Store lives, whatever the
// clock does.
type Store struct {
	maxBytes int

	mu     sync.Mutex // never held across a caller's code
	tokens map[coord.TokenKey]*token
	leases map[string]*lease
	ends   endings
	bytes  int
	floor  int64 // the largest number of a user who is forgotten
}

// ErrFull comes with coord.ErrStore: the store has no room for a new token or user.
var ErrFull = errors.New("memstore: no room")

var (
	_ coord.TokenStore = (*Store)(nil)
	_ coord.LeaseStore = (*Store)(nil)
)

// New returns an empty store. It fails if the bound is negative.
func New(o Options) (*Store, error) {
	if o.MaxBytes < 0 {
		return nil, fmt.Errorf("memstore: Options.MaxBytes: %d is negative", o.MaxBytes)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return &Store{
		maxBytes: o.MaxBytes,
		tokens:   make(map[coord.TokenKey]*token),
		leases:   make(map[string]*lease),
	}, nil
}

// Len returns how many tokens and users are remembered, those included that are over and
// still there.
func (m *Store) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tokens) + len(m.leases)
}

// begin locks m and returns the time, when what is over by then has gone.
func (m *Store) begin(ctx context.Context) (now time.Time, err error) {
	if ctx.Err() != nil {
		return now, context.Cause(ctx)
	}
	m.mu.Lock()
	now = time.Now()
	for len(m.ends) > 0 && !now.Before(m.ends[0].at) {
		e := heap.Pop(&m.ends).(*ending)
		m.bytes -= e.bytes
		e.forget(m)
	}
	return now, nil
}

// addLocked makes room for a record of so many bytes, besides its own.
func (m *Store) addLocked(e *ending, bytes int) error {
	bytes += bytesPerRecord
	if m.bytes+bytes > m.maxBytes {
		return fmt.Errorf("%w: %w", coord.ErrStore, ErrFull)
	}
	m.bytes += bytes
	e.bytes = bytes
	heap.Push(&m.ends, e)
	return nil
}

// moveLocked changes when a record is forgotten.
func (m *Store) moveLocked(e *ending, at time.Time) {
	e.at = at
	heap.Fix(&m.ends, e.index)
}

// ending is when a record is forgotten.
type ending struct {
	at     time.Time
	bytes  int
	index  int
	forget func(*Store) // takes the record away
}

// endings is a heap, the earliest first.
type endings []*ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, k int) bool { return e[i].at.Before(e[k].at) }

func (e endings) Swap(i, k int) {
	e[i], e[k] = e[k], e[i]
	e[i].index, e[k].index = i, k
}

// Push is of heap.Interface.
func (e *endings) Push(x any) {
	one := x.(*ending)
	one.index = len(*e)
	*e = append(*e, one)
}

// Pop is of heap.Interface.
func (e *endings) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return one
}
