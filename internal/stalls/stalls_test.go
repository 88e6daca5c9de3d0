package stalls

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{last: time.Now()}
		began := time.Now()
		pass := func(d time.Duration) { <-time.After(d); w.look(time.Now()) }
		pass(period)
		pass(100 * time.Millisecond) // a stall
		pass(period)
		require.Zero(t, w.Since(began))
		for range 60 {
			pass(period)
		}
		require.Equal(t, 310*time.Millisecond-100*time.Millisecond, w.Since(began))
		require.Equal(t, 300*time.Millisecond, w.Since(time.Now().Add(-300*time.Millisecond)), "after it")
		<-time.After(50 * time.Millisecond) // a stall that has not been looked for
		require.Zero(t, w.Since(time.Now().Add(-50*time.Millisecond)))
		require.Equal(t, 250*time.Millisecond, w.Since(time.Now().Add(-350*time.Millisecond)))
	})
}

func TestNoStallOnAQuietMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Begin(t)
		began := time.Now()
		<-time.After(time.Second)
		require.Equal(t, time.Second, w.Since(began))
	})
}
