package testenv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLengths(t *testing.T) {
	t.Setenv(variable, "")
	require.False(t, IsLong())
	require.Equal(t, time.Second, Duration(t, time.Second))
	require.Equal(t, 1, Count(1, 2))

	t.Setenv(variable, "2m")
	require.True(t, IsLong())
	require.Equal(t, 2*time.Minute, Duration(t, time.Second))
	require.Equal(t, 2, Count(1, 2))
}
