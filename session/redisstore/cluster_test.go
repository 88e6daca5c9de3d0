package redisstore_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// writers are goroutines that write increasing numbers until end is called. Each goroutine writes to its own field.
type writers struct {
	stop          chan struct{}
	wg            sync.WaitGroup
	sent          []int64        // the last value of each field; read it after end
	acked         []atomic.Int64 // the last acknowledged value of each field
	total, failed atomic.Int64
}

// write starts n goroutines that write to v's session. failed reports whether a write may return this error.
func write(t *testing.T, s session.Store, v visitor, n int, failed func(error) bool) *writers {
	w := &writers{stop: make(chan struct{}), sent: make([]int64, n), acked: make([]atomic.Int64, n)}
	for i := range n {
		w.wg.Go(func() {
			for value := int64(1); ; value++ {
				select {
				case <-w.stop:
					return
				default:
				}
				w.sent[i] = value
				switch err := s.Commit(t.Context(), v.delta(fmt.Sprint("f", i), fmt.Sprint(value))); {
				case err == nil:
					w.acked[i].Store(value)
					w.total.Add(1)
				case failed(err):
					w.failed.Add(1)
				default:
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	return w
}

func (w *writers) end() { close(w.stop); w.wg.Wait() }

// writeMore waits for n more acknowledged writes. It fails if they take longer than within.
func (w *writers) writeMore(t *testing.T, n int64, within time.Duration) {
	t.Helper()
	before := w.total.Load()
	require.Eventually(t, func() bool { return w.total.Load() >= before+n }, within, time.Millisecond)
}

// sync waits until s has a new value from every goroutine.
func (w *writers) sync(t *testing.T, s session.Store, v visitor, within time.Duration) {
	t.Helper()
	before := make([]int64, len(w.acked))
	for i := range before {
		before[i] = w.acked[i].Load()
	}
	require.Eventually(t, func() bool {
		rec, err := s.Load(t.Context(), v.locator, v.digest, limits)
		for i := range before {
			value, _ := strconv.ParseInt(string(rec.Fields[fmt.Sprint("f", i)]), 10, 64)
			if value <= before[i] {
				return false
			}
		}
		return err == nil
	}, within, 10*time.Millisecond)
}

// check fails if a field is older than the last acknowledged write.
func (w *writers) check(t *testing.T, s session.Store, v visitor) {
	t.Helper()
	rec := loaded(t, s, v)
	for i := range w.sent {
		value, _ := strconv.ParseInt(string(rec.Fields[fmt.Sprint("f", i)]), 10, 64)
		require.GreaterOrEqual(t, value, w.acked[i].Load(), "an acknowledged write is lost")
		require.LessOrEqual(t, value, w.sent[i])
	}
}

// loaded returns v's session. It retries, because a client may close connections shortly after a failover.
func loaded(t *testing.T, s session.Store, v visitor) (rec storage.Record) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		rec, err = s.Load(t.Context(), v.locator, v.digest, limits)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return rec
}

func never(error) bool { return false }

// TestSlotMigrationUnderLoad moves a slot with many sessions between the nodes of a Cluster. Writes must not fail, and
// sessions that are destroyed during a move must not come back.
func TestSlotMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	client := c.Client(nil)
	s := newStore(t, client, redisstore.Options{Prefix: "{one slot}:", Timeout: patient.Timeout})
	v := newVisitor().created(t, s)
	w := write(t, s, v, 64, never)
	slot := c.Slot("{one slot}")
	for i := range 6 {
		doomed := make([]visitor, 8)
		for k := range doomed {
			doomed[k] = newVisitor().created(t, s, "user", "ada")
		}
		m := c.BeginMove(slot, c.Masters(slot)[1+i%2])
		m.MoveKeys(4) // the slot has nine
		for _, d := range doomed {
			require.NoError(t, s.Destroy(t.Context(), d.locator, d.digest))
			require.ErrorIs(t, s.Commit(t.Context(), d.delta("late", "1")), storage.ErrGone)
		}
		w.writeMore(t, 64, 10*time.Second)
		m.End()
		w.writeMore(t, 64, 10*time.Second)
		for _, d := range doomed {
			require.Zero(t, client.Exists(t.Context(), "{one slot}:"+d.locator.Key()).Val(), "revived")
		}
	}
	w.end()
	w.check(t, s, v)
	for i := range w.sent {
		require.Equal(t, w.sent[i], w.acked[i].Load())
	}
}
