package child

import (
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessThatDoesNotAnswerIsKilled(t *testing.T) {
	all, err := AllCPUs()
	require.NoError(t, err)
	p, err := Start(exec.Command("sleep", "60"), all)
	require.NoError(t, err)
	p.patience = time.Millisecond
	_, err = p.Poll()
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "did not answer")
	require.EqualError(t, p.Close(), "signal: killed")
}
