package coord

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"
)

// MemoryOptions bound a [Memory]. The zero value is usable.
type MemoryOptions struct {
	// MaxBytes is how much memory tokens and leases may take together. Counted are the
	// bytes of metadata and names, and 512 for each token and user. Default: 64 MiB.
	MaxBytes int
}

const (
	defaultMaxBytes = 64 << 20
	bytesPerRecord  = 512
)

// Memory is a [TokenStore] and a [LeaseStore] in this process, for one that is alone, and
// for tests. It never evicts: when it is full, what is new is refused with ErrFull, because
// a token or a lease that it forgot could be had again. What is over leaves with later
// calls. It starts no goroutine, needs no closing, and its content ends with the process.
//
// Fencing numbers are as those of [Redis], and grow as long as the Memory lives, whatever the
// clock does.
type Memory struct {
	maxBytes int

	mu     sync.Mutex // never held across a caller's code
	tokens map[TokenKey]*memoryToken
	leases map[string]*memoryLease
	ends   endings
	bytes  int
	floor  int64 // the largest number of a user who is forgotten
}

var (
	_ TokenStore = (*Memory)(nil)
	_ LeaseStore = (*Memory)(nil)
)

// NewMemory returns an empty store. It fails if the bound is negative.
func NewMemory(o MemoryOptions) (*Memory, error) {
	if o.MaxBytes < 0 {
		return nil, invalid("MemoryOptions.MaxBytes is %d", o.MaxBytes)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return &Memory{
		maxBytes: o.MaxBytes,
		tokens:   make(map[TokenKey]*memoryToken),
		leases:   make(map[string]*memoryLease),
	}, nil
}

// Len returns how many tokens and users are remembered, those included that are over and
// still there.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tokens) + len(m.leases)
}

// begin locks m and returns the time, when what is over by then has gone.
func (m *Memory) begin(ctx context.Context) (now time.Time, err error) {
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
func (m *Memory) addLocked(e *ending, bytes int) error {
	bytes += bytesPerRecord
	if m.bytes+bytes > m.maxBytes {
		return fmt.Errorf("%w: %w", ErrStore, ErrFull)
	}
	m.bytes += bytes
	e.bytes = bytes
	heap.Push(&m.ends, e)
	return nil
}

// moveLocked changes when a record is forgotten.
func (m *Memory) moveLocked(e *ending, at time.Time) {
	e.at = at
	heap.Fix(&m.ends, e.index)
}

// ending is when a record is forgotten.
type ending struct {
	at     time.Time
	bytes  int
	index  int
	forget func(*Memory) // takes the record away
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
