package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/session/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMemory(t testing.TB, o memstore.Options) *memstore.Store {
	t.Helper()
	m, err := memstore.New(o)
	require.NoError(t, err)
	return m
}

// pass moves the clock of a synctest bubble by d.
func pass(d time.Duration) { <-time.After(d) }

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
