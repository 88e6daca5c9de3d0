package reqctx_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestState(t *testing.T) {
	var j journal
	reg := reqctx.NewRegistry(reqctx.Options{Observer: &recorder{j: &j}})
	state := reqctx.NewKey[*user]("state")
	reqctx.ProvideState(reg, state, func(ctx context.Context) (*user, error) {
		_, ok := ctx.(*reqctx.Context)
		require.True(t, ok, "a state may keep its context")
		return &user{"ada"}, nil
	})
	c := reqctx.New(t.Context(), reg)
	derived, cancel := context.WithCancel(c)
	defer cancel()
	first, err := state.Get(derived)
	require.NoError(t, err)
	second, err := reqctx.Get(c, "state")
	require.NoError(t, err)
	require.Same(t, first, second)
	require.NoError(t, reqctx.Resolve(c, "state", "state"))
	require.True(t, c.CommitUnused(), "a state is not committed")
	require.True(t, c.Idle())
	require.NoError(t, c.Finish())
	require.Empty(t, j.all(), "it is not observed")
	require.ErrorIs(t, state.Require(c), reqctx.ErrFinished)
}

// The error of a state is kept, like the error of a property.
func TestFailingState(t *testing.T) {
	reg := quiet()
	state := reqctx.NewKey[int]("state")
	calls := 0
	reqctx.ProvideState(reg, state, func(context.Context) (int, error) { calls++; return 0, errBoom })
	c := request(t, reg)
	for range 2 {
		require.ErrorIs(t, state.Require(c), errBoom)
	}
	require.Equal(t, 1, calls)
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
}

func TestStatesMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		state := reqctx.NewKey[*user]("state")
		reqctx.ProvideState(reg, state, func(context.Context) (*user, error) {
			<-time.After(time.Millisecond) // until all goroutines have arrived
			return &user{}, nil
		})
		c := request(t, reg)
		var got [5]*user
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i], _ = state.Get(c) })
		}
		wg.Wait()
		for _, u := range got {
			require.Same(t, got[0], u, "one for all")
		}
	})
}

// TestStateIsMadeWhileClosing reads a state and a batch for the first time after the tasks have ended.
func TestStateIsMadeWhileClosing(t *testing.T) {
	reg := quiet()
	state := reqctx.NewKey[int]("state")
	reqctx.ProvideState(reg, state, func(context.Context) (int, error) { return 7, nil })
	batch := reqctx.NewBatch[int, int]("batch")
	reqctx.ProvideBatch(reg, batch, func(context.Context, []int) (map[int]int, error) { panic("loaded") })
	c := reqctx.New(t.Context(), reg)
	closed := false
	c.OnClose(func() error {
		closed = true
		v, err := state.Get(c)
		assert.NoError(t, err)
		assert.Equal(t, 7, v)
		_, err = batch.Get(c, 1)
		assert.ErrorIs(t, err, lazy.ErrClosed)
		return nil
	})
	require.NoError(t, c.Finish())
	require.True(t, closed)
	require.ErrorIs(t, state.Require(c), reqctx.ErrFinished, "it is not kept")
}

func TestStateThatIsMadeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		state := reqctx.NewKey[string]("state")
		reqctx.ProvideState(reg, state, stubborn(time.Second, "v"))
		c := reqctx.New(t.Context(), reg)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := state.Get(c)
			assert.ErrorIs(t, err, reqctx.ErrFinished)
		})
		synctest.Wait()
		require.NoError(t, c.Finish())
		wg.Wait()
	})
}
