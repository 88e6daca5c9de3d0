package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "proxy.yaml")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write(file, "1")
	changed := make(chan string, 16)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	began := make(chan struct{})
	go func() {
		close(began)
		ended <- watchFile(ctx, file, func() {
			text, _ := os.ReadFile(file)
			changed <- string(text)
		})
	}()
	<-began
	sees := func(text string, change func()) {
		t.Helper()
		require.Eventually(t, func() bool {
			change() // again, until the watch has begun
			select {
			case got := <-changed:
				return got == text
			case <-time.After(3 * settleTime):
				return false
			}
		}, 20*time.Second, time.Millisecond)
	}
	i := 0
	sees("1x", func() { i++; write(file, strings.Repeat(" ", i)); write(file, "1x") })
	sees("2", func() { write(file+".new", "2"); require.NoError(t, os.Rename(file+".new", file)) })
	sees("3", func() { _ = os.Remove(file); write(file, "3") })

	// Other files of the folder and new modification times are no change.
	write(filepath.Join(dir, "other"), "3")
	write(file, "3")
	require.NoError(t, os.Chtimes(file, time.Now(), time.Now()))
	select {
	case got := <-changed:
		require.Fail(t, "nothing has changed", got)
	case <-time.After(4 * settleTime):
	}
	stop()
	require.NoError(t, <-ended)
	require.Error(t, watchFile(t.Context(), filepath.Join(dir, "none", "x"), nil))
}
