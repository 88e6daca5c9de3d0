package layer

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// underLoad has many callers take, one take after another, until stop says so.
func (f *failover) underLoad(callers int, stop func() bool) {
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for !stop() {
				if res, _, err := f.take(windowOf(1<<40), fmt.Sprint("caller", i), 1); err != nil || !res.Allowed {
					f.Errorf("%+v, %v", res, err)
				}
			}
		})
	}
	wg.Wait()
}

// during stops after so long.
func during(d time.Duration) (stop func() bool) {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}

func (f *failover) isDown() bool { return f.Stats().Down }

// TestAStoreWithALongTimeoutIsGivenUp has calls that fail longer ago than a second after
// they began.
func TestAStoreWithALongTimeoutIsGivenUp(t *testing.T) {
	o := FailoverOptions{Mode: Open, Timeout: 3 * time.Second}
	withFailover(t, o, func(t *testing.T, f *failover) {
		f.store.becomes(heeds)
		stop := during(3 * o.Timeout)
		f.underLoad(64, func() bool { return stop() || f.isDown() })
		require.True(t, f.isDown())
		require.LessOrEqual(t, f.store.asked(), 2*64)
	})
}
