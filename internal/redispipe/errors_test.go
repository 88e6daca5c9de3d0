package redispipe

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"OOM command not allowed": "OOM command not allowed",
		"ERR unknown command 'evalsha', with args beginning with: 'secret' ": "ERR unknown command 'evalsha'",
		"MOVED 1234 app:secret": "MOVED",
		"ERR unknown command 'app:secret', with args beginning with: 'x'": "ERR",
	} {
		got := redact(redacted(text), "app:")
		require.EqualError(t, got, want)
		var reply redis.Error
		require.True(t, errors.As(error(got), &reply))
	}
}

func TestFailures(t *testing.T) {
	store, keyType, left := errors.New("store"), errors.New("key type"), errors.New("left")
	f := Failures{Store: store, KeyType: keyType, Prefix: "app:"}
	live := t.Context()
	ended, cancel := context.WithCancelCause(live)
	cancel(left)
	require.Equal(t, left, f.Wrap(ended, left))
	require.Equal(t, keyType, f.Wrap(live, redacted("WRONGTYPE Operation against a key")))
	require.Equal(t, keyType, f.Wrap(live, redacted("FOREIGN another hash")))
	require.EqualError(t, f.Wrap(live, redacted("ERR on app:secret")), "store: ERR")
	for _, err := range []error{ErrNotSent, ErrNoReply, ErrUnreadable, context.Canceled} {
		for _, ctx := range []context.Context{live, ended} {
			require.ErrorIs(t, f.Wrap(ctx, err), store)
			require.ErrorIs(t, f.Wrap(ctx, err), err)
		}
	}
}

func TestErrorsNameTheNode(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	_, err := p.Run(t.Context(), long, Call{Script: fails, Keys: []string{"any"}})
	require.EqualError(t, err, "redis "+s.Addr+": NO not this")
	f := Failures{Store: errors.New("store"), Prefix: "app:"}
	require.EqualError(t, f.Wrap(t.Context(), err), "store: redis "+s.Addr+": NO not this")
	require.ErrorContains(t, run(t.Context(), p, 0, "n", 1), "redis "+s.Addr+": not sent")
}
