package lazy

import (
	"context"
	"fmt"
	"sync"
)

// Memo is a function whose results are computed once for each argument. Each argument has
// a [Value] of its own, with all its rules: callers share a computation, errors are
// forgotten outside of a scope and kept in one, cycles name the arguments.
//
// A Memo keeps every result until Forget or Reset, so a long-lived Memo of an unbounded
// number of arguments needs them, or a Scope. A Memo is safe for concurrent use.
type Memo[K comparable, V any] struct {
	fn    func(ctx context.Context, key K) (V, error)
	scope *Scope // nil: stand-alone

	mu     sync.RWMutex
	values map[K]*Value[V]
}

// NewMemo returns a stand-alone memo of fn.
func NewMemo[K comparable, V any](fn func(ctx context.Context, key K) (V, error)) *Memo[K, V] {
	return MemoIn(nil, fn)
}

// MemoIn returns a memo of fn whose values belong to the scope s.
func MemoIn[K comparable, V any](s *Scope, fn func(ctx context.Context, key K) (V, error)) *Memo[K, V] {
	return &Memo[K, V]{fn: fn, scope: s, values: make(map[K]*Value[V])}
}

// Get returns fn's result for key, computing it first if necessary, as [Value.Get] does.
func (m *Memo[K, V]) Get(ctx context.Context, key K) (V, error) {
	v := m.lookup(key)
	if v == nil {
		v = m.add(key)
	}
	val, err := v.Get(ctx)
	if err != nil && m.scope == nil {
		m.dropIdle(key, v)
	}
	return val, err
}

// Peek returns the result for key, and reports whether there is one.
func (m *Memo[K, V]) Peek(key K) (val V, err error, ok bool) {
	v := m.lookup(key)
	if v == nil {
		return val, nil, false
	}
	return v.Peek()
}

// Set makes val the result for key.
func (m *Memo[K, V]) Set(key K, val V) { m.add(key).Set(val) }

// Forget forgets the result for key: the next Get computes it anew. Present waiters get
// the result of the computation that they wait for.
func (m *Memo[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// Reset forgets all results.
func (m *Memo[K, V]) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.values)
}

// lookup returns the value of key, or nil. It panics, without the lock, if key cannot be
// hashed.
func (m *Memo[K, V]) lookup(key K) *Value[V] {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.values[key]
}

// add returns the value of key, which it makes if necessary.
func (m *Memo[K, V]) add(key K) *Value[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.values[key]
	if v == nil {
		v = &Value[V]{
			fn:    func(ctx context.Context) (V, error) { return m.fn(ctx, key) },
			scope: m.scope,
			name:  func() string { return fmt.Sprintf("%s(%v)", funcName(m.fn), key) },
		}
		m.values[key] = v
	}
	return v
}

// dropIdle removes a value without an outcome that is not being computed, so that values
// of failing arguments do not accumulate.
func (m *Memo[K, V]) dropIdle(key K, v *Value[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values[key] == v && v.idle() {
		delete(m.values, key)
	}
}
