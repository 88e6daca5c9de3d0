package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// TestFailoverUnderLoad checks that writes fail only during a failover.
func TestFailoverUnderLoad(t *testing.T) {
	for name, fail := range map[string]func(*testhost.Sentinel){
		"in good order": (*testhost.Sentinel).Failover,
		"by a crash":    (*testhost.Sentinel).KillMaster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := testhost.StartSentinel(t)
			s := newStore(t, host.Client(nil), redisstore.Options{})
			v := newVisitor().created(t, s, "user", "ada")
			w := write(t, s, v, 16, func(err error) bool { return !errors.Is(err, storage.ErrGone) })
			w.writeMore(t, 200, 10*time.Second)
			host.WaitReplicated() // later writes may be lost
			fail(host)
			w.writeMore(t, 200, 5*time.Second)
			// Wait for writes to the new master, which are not lost.
			w.sync(t, newStore(t, host.Replica.Client(nil), patient), v, 10*time.Second)
			w.end()
			require.Equal(t, "ada", string(loaded(t, s, v).Fields["user"]))
			w.check(t, s, v)
		})
	}
}
