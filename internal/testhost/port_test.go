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
	ports, err := reservePair(10000)
	require.NoError(t, err)
	require.Equal(t, ports[0].number+10000, ports[1].number)
	for _, p := range ports {
		defer p.Release()
		l, err := net.Listen("tcp", p.Addr())
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	_, err = reservePair(65535)
	require.ErrorContains(t, err, "65535 apart")
}
