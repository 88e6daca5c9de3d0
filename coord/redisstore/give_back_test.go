package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func TestMayBeGranted(t *testing.T) {
	left := errors.New("left")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	f := redispipe.Failures{Store: coord.ErrStore, KeyType: errKeyType, Prefix: "coord:"}
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), f.Wrap(t.Context(), ErrNoReply), true},
		{t.Context(), f.Wrap(t.Context(), fmt.Errorf("%w: %w", ErrNoReply, errors.New("EOF"))), true},
		{t.Context(), errUnreadable, true},
		{ended, f.Wrap(ended, left), true},
		{t.Context(), nil, false},
		{ended, nil, false},
		{t.Context(), f.Wrap(t.Context(), ErrNotSent), false},
		{t.Context(), f.Wrap(t.Context(), refusal("OOM command not allowed")), false},
		{t.Context(), f.Wrap(t.Context(), refusal("WRONGTYPE Operation")), false},
		{t.Context(), &coord.DeniedError{Reason: coord.ErrHeld}, false},
		{ended, &coord.DeniedError{Reason: coord.ErrTooSoon}, false},
	} {
		require.Equal(t, tt.want, mayBeGranted(tt.ctx, tt.err), "%v", tt.err)
	}
}
