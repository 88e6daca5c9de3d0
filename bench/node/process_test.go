package node

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// scripted is set in a process that stands in for a script: a test needs no Node.
const scripted = "LAZYREQ_BENCH_SCRIPT"

func TestMain(m *testing.M) {
	if os.Getenv(scripted) != "" {
		script()
		os.Exit(0)
	}
	if err := os.Chdir(".."); err != nil { // where the benchmarks are run
		panic(err)
	}
	os.Exit(m.Run())
}

// script answers each command with the answer in it, until one has none.
func script() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var answer string
		if n, _ := fmt.Sscanf(in.Text(), `{"answer":%q}`, &answer); n == 0 {
			return
		}
		fmt.Println(answer)
	}
}

func started(t *testing.T) *Process {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), scripted+"=yes")
	p, err := startProcess(cmd)
	require.NoError(t, err)
	return p
}

func TestAsk(t *testing.T) {
	p := started(t)
	var got struct{ Ops int }
	require.NoError(t, p.Ask(map[string]any{"answer": `{"ops": 7}`}, &got))
	require.Equal(t, 7, got.Ops)
	require.ErrorIs(t, p.Ask(map[string]any{"answer": `{"wrong": "count of 2, want 3"}`}, &got), harness.ErrWrong)
	err := p.Ask(map[string]any{"answer": `{"error": "boom"}`}, &got)
	require.EqualError(t, err, "boom")
	require.NotErrorIs(t, err, harness.ErrWrong)
	require.Error(t, p.Ask(map[string]any{"answer": "no JSON"}, &got))
	require.NoError(t, p.Ask(map[string]any{"answer": `{"ops": 8}`}, &got))
	require.Equal(t, 8, got.Ops, "none of the answers before is read again")
	require.NoError(t, p.Close())
}

func TestScriptThatEnds(t *testing.T) {
	p := started(t)
	require.ErrorContains(t, p.Ask(map[string]any{"do": "end"}, &struct{}{}), ".test has ended or was killed")
	require.NoError(t, p.Close())
	require.Error(t, p.Ask(map[string]any{"do": "cpu"}, &struct{}{}))
}

func TestScriptThatDoesNotAnswerIsKilled(t *testing.T) {
	p, err := startProcess(exec.Command("sleep", "60"))
	require.NoError(t, err)
	p.patience = time.Millisecond
	require.ErrorContains(t, p.Ask(map[string]any{"do": "cpu"}, &struct{}{}), "did not answer")
	require.EqualError(t, p.Close(), "signal: killed")
}

func TestPackageThatIsNowhere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), "redback", "redback.js")
	require.ErrorIs(t, err, harness.ErrMissing)
	require.ErrorContains(t, err, "no node on this machine")
}
