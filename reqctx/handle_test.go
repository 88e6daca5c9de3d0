package reqctx_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestHandles(t *testing.T) {
	var j journal
	reg := reqctx.NewRegistry(reqctx.Options{Observer: &recorder{j: &j}})
	h := provide(reg, "h", reqctx.Prop[*user]{
		Handle: true,
		Resolve: func(ctx context.Context) (*user, error) {
			_, ok := ctx.(*reqctx.Context)
			require.True(t, ok, "a handle may keep its context")
			return &user{"handle"}, nil
		},
		Close: func(_ context.Context, u *user, err error) error { j.add("close " + u.name); return err },
	})
	c := reqctx.New(t.Context(), reg)
	derived, cancel := context.WithCancel(c)
	defer cancel()
	first, err := h.Get(derived)
	require.NoError(t, err)
	second, err := c.Get("h")
	require.NoError(t, err)
	require.Same(t, first, second)
	require.NoError(t, c.Resolve("h", "h"))
	require.NoError(t, c.Finish())
	require.Equal(t, []string{"close handle"}, j.all(), "not observed")
	_, err = h.Get(c)
	require.ErrorIs(t, err, reqctx.ErrFinished)
}

func TestHandlesMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var mu sync.Mutex
		made, closed := 0, 0
		h := provide(reg, "h", reqctx.Prop[*user]{
			Handle: true,
			Resolve: func(context.Context) (*user, error) {
				mu.Lock()
				made++
				mu.Unlock()
				<-time.After(time.Millisecond) // so that all are here
				return &user{}, nil
			},
			Close: func(context.Context, *user, error) error { closed++; return nil },
		})
		c := reqctx.New(t.Context(), reg)
		var got [5]*user
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i], _ = h.Get(c) })
		}
		wg.Wait()
		for _, u := range got {
			require.Same(t, got[0], u, "one for all")
		}
		require.NoError(t, c.Finish())
		require.Equal(t, made, closed, "each Resolve has its Close")
	})
}

func TestHandleIsNotMadeAfterFinish(t *testing.T) {
	reg := quiet()
	h := provide(reg, "h", reqctx.Prop[int]{Handle: true, Resolve: func(context.Context) (int, error) { panic("made") }})
	c := reqctx.New(t.Context(), reg)
	require.NoError(t, c.Finish())
	_, err := h.Get(c)
	require.ErrorIs(t, err, reqctx.ErrFinished)
}

func TestHandleThatIsMadeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		h := provide(reg, "h", reqctx.Prop[string]{Handle: true, Resolve: stubborn(time.Second, "v"), Close: closes(&j, "h")})
		c := reqctx.New(t.Context(), reg)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := h.Get(c)
			assert.ErrorIs(t, err, reqctx.ErrFinished)
		})
		synctest.Wait()
		require.NoError(t, c.Finish())
		require.Empty(t, j.all())
		wg.Wait()
		require.Equal(t, []string{`h("v", <nil>)`}, j.all(), "nothing is left open")
	})
}
