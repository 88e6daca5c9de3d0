package reqctx_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestTasksEndWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		var j journal
		require.NoError(t, c.Go("task", func(ctx context.Context) error {
			v, err := k.Get(ctx)
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), lazy.ErrClosed)
			<-time.After(time.Second) // Finish waits
			j.add("task")
			return ctx.Err()
		}))
		require.NoError(t, c.Go("to the end", func(ctx context.Context) error {
			_, err := takes(2*time.Second, 1)(context.WithoutCancel(ctx))
			j.add("to the end")
			return err
		}))
		synctest.Wait()
		require.False(t, c.Idle())
		c.OnClose(func() error { j.add("close"); return nil })
		require.NoError(t, c.Finish(), "its own cancellation is no error of a task")
		require.Equal(t, []string{"task", "to the end", "close"}, j.all())
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestTaskErrorsAreLoggedWithTheirName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Go("audit", func(context.Context) error { return errBoom }))
		require.NoError(t, c.Go("mail", func(context.Context) error { panic("bang") }))
		require.NoError(t, c.Go("query", func(context.Context) error { return context.Canceled }))
		require.NoError(t, c.Go("fine", func(context.Context) error { return nil }))
		require.NoError(t, c.Go("half", func(context.Context) error { runtime.Goexit(); return nil }))
		synctest.Wait()
		err := c.Finish()
		require.ErrorIs(t, err, errBoom)
		for _, text := range []string{`task "audit": boom`, "mail panicked: bang", `task "query": context canceled`, `task "half": lazy: the function called runtime.Goexit`} {
			require.ErrorContains(t, err, text)
		}
		require.NotContains(t, err.Error(), "fine")
		require.Contains(t, log.String(), `task \"audit\": boom`)
		require.Contains(t, log.String(), "mail panicked: bang")
	})
}

func TestTaskThatTheEndInterrupts(t *testing.T) {
	reg := quiet()
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
	for name, task := range map[string]func(ctx context.Context) error{
		"err":   func(ctx context.Context) error { return fmt.Errorf("wrapped: %w", ctx.Err()) },
		"cause": func(ctx context.Context) error { return fmt.Errorf("wrapped: %w", context.Cause(ctx)) },
		"get": func(ctx context.Context) error {
			_, err := k.Get(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := request(t, reg)
			require.NoError(t, c.Go("task", func(ctx context.Context) error {
				<-ctx.Done()
				err := task(ctx)
				assert.Error(t, err)
				return err
			}))
		})
	}
}
