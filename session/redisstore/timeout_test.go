package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A commit that binds ends while the entry in the user's index is still kept, whatever Options.Timeout is.
func TestCommitThatBindsHasShorterTimeout(t *testing.T) {
	long, short := &Store{timeout: 2 * settleTime}, &Store{timeout: time.Second}
	require.Equal(t, 2*settleTime, long.commitTimeout(storage.Delta{}))
	require.Less(t, long.commitTimeout(storage.Delta{Bind: "ada"}), settleTime)
	require.Equal(t, time.Second, short.commitTimeout(storage.Delta{Bind: "ada"}))
}
