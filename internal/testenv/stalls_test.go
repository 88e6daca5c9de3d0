package testenv

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Stalls{last: time.Now()}
		began := time.Now()
		pass := func(d time.Duration) { <-time.After(d); w.check(time.Now()) }
		pass(checkPeriod)
		pass(100 * time.Millisecond) // a stall
		pass(checkPeriod)
		require.Zero(t, w.Since(began))
		for range 60 {
			pass(checkPeriod)
		}
		require.Equal(t, 310*time.Millisecond-100*time.Millisecond, w.Since(began))
		require.Equal(t, 300*time.Millisecond, w.Since(time.Now().Add(-300*time.Millisecond)), "after it")
		<-time.After(50 * time.Millisecond) // a stall that no check has noticed yet
		require.Zero(t, w.Since(time.Now().Add(-50*time.Millisecond)))
		require.Equal(t, 250*time.Millisecond, w.Since(time.Now().Add(-350*time.Millisecond)))
		var none *Stalls
		require.Zero(t, none.Between(began, time.Now()))
	})
}

func TestSlowProbeIsAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := true
		w := WatchStalls(t, func() {
			if slow {
				<-time.After(100 * time.Millisecond)
			}
			slow = false
		})
		began := time.Now()
		<-time.After(time.Second)
		require.Equal(t, 105*time.Millisecond, w.Between(began, time.Now()))
		require.Equal(t, 5*time.Millisecond, w.Between(began.Add(100*time.Millisecond), time.Now()))
		require.Equal(t, 10*time.Millisecond, w.Between(began, began.Add(10*time.Millisecond)))
	})
}

func TestNoStallOnAQuietMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := WatchStalls(t, nil)
		began := time.Now()
		<-time.After(time.Second)
		require.Equal(t, time.Second, w.Since(began))
	})
}
