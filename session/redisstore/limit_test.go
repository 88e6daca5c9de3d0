package redisstore_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// logsInWithin creates v's session, bound to ada, who may keep n sessions.
func (v visitor) logsInWithin(t *testing.T, s session.Store, n int) error {
	d := v.delta()
	d.Create, d.Bind, d.MaxPerUser = true, "ada", n
	return s.Commit(t.Context(), d)
}

// existing returns the number of visitors whose sessions can be loaded.
func existing(t *testing.T, s session.Store, all []visitor) (n int) {
	for _, v := range all {
		if _, err := s.Load(t.Context(), v.locator, v.digest, limits); err == nil {
			n++
		} else {
			require.ErrorIs(t, err, storage.ErrNotFound)
		}
	}
	return n
}

// TestLimitedLoginIsCutShort breaks the connection before each write of a login that must end another session. In no
// case are more sessions left than allowed, and the next login works.
func TestLimitedLoginIsCutShort(t *testing.T) {
	server := testhost.StartRedis(t)
	direct := newStore(t, server.Client(nil), patient)
	failed, done := 0, false
	for cut := int64(1); !done; cut++ {
		all := []visitor{newVisitor(), newVisitor(), newVisitor(), newVisitor()}
		require.NoError(t, all[0].logsInWithin(t, direct, 2))
		require.NoError(t, all[1].logsInWithin(t, direct, 2))
		var armed atomic.Bool
		var writes atomic.Int64
		s := newStore(t, server.Client(tapped(func(conn net.Conn, _ []byte) {
			if armed.Load() && writes.Add(1) == cut {
				_ = conn.Close()
			}
		})), patient)
		require.Equal(t, 2, listed(t, s, "ada")) // opens a connection
		armed.Store(true)
		err := all[2].logsInWithin(t, s, 2)
		require.LessOrEqual(t, existing(t, direct, all), 2, "write %d", cut)
		if done = writes.Load() < cut; done {
			require.NoError(t, err)
		}
		if err != nil { // otherwise, only an entry of the index was not dropped
			failed++
			require.True(t, errors.Is(err, redisstore.ErrNoReply) || errors.Is(err, redisstore.ErrNotSent), err)
		}
		require.NoError(t, all[3].logsInWithin(t, direct, 2))
		require.LessOrEqual(t, existing(t, direct, all), 2, "write %d", cut)
		require.Equal(t, existing(t, direct, all), listed(t, direct, "ada"))
		revoked(t, direct, "ada")
	}
	require.GreaterOrEqual(t, failed, 7)
}

func TestLimitedLoginCostsFourCalls(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	require.NoError(t, newVisitor().logsInWithin(t, s, 9)) // loads the scripts
	before, _ := server.Calls("evalsha")
	require.NoError(t, newVisitor().logsInWithin(t, s, 9))
	after, _ := server.Calls("evalsha")
	require.Equal(t, 4, after-before)
}
