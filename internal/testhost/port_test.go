package testhost

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortCanBeListenedOnAgainAndAgain(t *testing.T) {
	p, err := ReservePort()
	require.NoError(t, err)
	defer p.Release()
	for range 3 {
		l, err := net.Listen("tcp", p.Addr())
		require.NoError(t, err)
		conn, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, l.Close())
		_, err = net.Dial("tcp", p.Addr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
}

func TestReservePairDistance(t *testing.T) {
	low, high, err := reservePair(10000)
	require.NoError(t, err)
	defer low.Release()
	defer high.Release()
	require.Equal(t, low.number+10000, high.number)
	for _, p := range []*Port{low, high} {
		l, err := net.Listen("tcp", p.Addr())
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	_, _, err = reservePair(65535)
	require.ErrorContains(t, err, "65535 apart")
}
