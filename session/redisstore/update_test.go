package redisstore_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
)

// TestUpdatesOfOneSessionAllCount updates a field 640 times, with 32 updates at a time, on two servers that share a Redis
// client. Then their calls share round trips, and their tries are in step most easily.
func TestUpdatesOfOneSessionAllCount(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	sites := []site{newSite(t, c), newSite(t, c)}
	cookie, err := sites[0].request(t, nil, login)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 20 {
				if err := sites[i%2].increment(t, cookie); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, err = sites[0].request(t, cookie, func(s session.Session) error {
		n, err := s.Get("n")
		require.EqualValues(t, 640, n)
		return err
	})
	require.NoError(t, err)
}

// increment runs a request that adds 1 to the field "n" with Update.
func (s site) increment(t *testing.T, cookie *http.Cookie) error {
	c := s.begin(t, cookie)
	err := session.NewField[int]("n").Update(c, func(n int) (int, error) { return n + 1, nil })
	return errors.Join(err, c.Commit(http.StatusOK, http.Header{}), c.Finish())
}
