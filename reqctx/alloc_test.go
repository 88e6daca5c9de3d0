package reqctx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestHitDoesNotAllocate(t *testing.T) {
	h := reqctx.New(t.Context(), benchRegistry(4))
	c := &h.Context
	derived := context.WithValue(context.Context(c), depthKey(0), 1)
	require.NoError(t, benchUser.Require(c))
	var u *user
	for name, hit := range map[string]func(){
		"key":     func() { u, _ = benchUser.Get(c) },
		"derived": func() { u, _ = benchUser.Get(derived) },
		"peek":    func() { u, _, _ = benchUser.Peek(c) },
		"name": func() {
			v, _ := reqctx.Get(c, "user")
			u, _ = v.(*user)
		},
	} {
		t.Run(name, func(t *testing.T) {
			u = nil
			require.Zero(t, testing.AllocsPerRun(100, hit))
			require.Equal(t, "ada", u.name)
		})
	}
}

var sink *reqctx.Host

func TestContextIsOneAllocation(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 16: 1, 19: 1, 20: 1, 21: 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			reg := benchRegistry(n)
			require.Equal(t, want, testing.AllocsPerRun(100, func() { sink = reqctx.New(context.Background(), reg) }),
				"a property that is defined and not used adds nothing")
			require.Equal(t, want, testing.AllocsPerRun(100, func() {
				sink = reqctx.New(context.Background(), reg)
				_ = sink.Commit(200, nil)
				_ = sink.Finish()
			}), "nor do its phases")
		})
	}
}

func TestFirstResolutionAllocations(t *testing.T) {
	reg := benchRegistry(16)
	sink = nil
	first := testing.AllocsPerRun(100, func() {
		sink = reqctx.New(context.Background(), reg)
		_, _ = benchUser.Get(sink)
	})
	require.LessOrEqual(t, first, 2.0, "the context, and the attempt with its outcome")
	require.Equal(t, "ada", func() string { u, _ := benchUser.Get(sink); return u.name }())
}
