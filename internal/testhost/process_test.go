package testhost

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo writes its argument, and then each line that it reads.
func echo(arg string, in io.Reader, out io.Writer) {
	fmt.Fprintln(out, arg, os.Getpid() != os.Getppid())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Fprintln(out, lines.Text())
	}
}

func TestProcessInputAndOutput(t *testing.T) {
	t.Run("in a subtest", func(t *testing.T) {
		ServeProcess(t, echo)
		p := StartProcess(t, "an argument")
		lines := bufio.NewScanner(p.Out)
		require.True(t, lines.Scan())
		require.Equal(t, "an argument true", lines.Text())
		for _, line := range []string{"one", "two"} {
			fmt.Fprintln(p.In, line)
			require.True(t, lines.Scan())
			require.Equal(t, line, lines.Text())
		}
		p.End(t)
		require.False(t, lines.Scan())
	})
}

func TestPauseAndKill(t *testing.T) {
	ServeProcess(t, echo)
	p := StartProcess(t, "")
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(p.Out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	<-lines
	p.Pause()
	for silent := false; !silent; {
		fmt.Fprintln(p.In, "one")
		select {
		case <-lines: // the process has not stopped yet
		case <-time.After(50 * time.Millisecond):
			silent = true
		}
	}
	p.Resume()
	require.Equal(t, "one", <-lines)
	p.Pause()
	p.Kill()
	_, more := <-lines
	require.False(t, more)
}
