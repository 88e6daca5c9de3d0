package testhost

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReservedPortIsExclusive(t *testing.T) {
	p, err := ReservePort()
	require.NoError(t, err)
	_, err = reserve(p.number)
	require.ErrorContains(t, err, "in use")
	for range 2000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NotEqual(t, p.Addr(), l.Addr().String())
		require.NoError(t, l.Close())
	}
	p.Release()
	again, err := reserve(p.number)
	require.NoError(t, err, "released")
	again.Release()
}
