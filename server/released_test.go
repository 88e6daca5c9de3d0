package server_test

import (
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// releases checks, when the test and its clean-ups have ended, that the process has no more goroutines
// and file descriptors than now.
func releases(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the runtime's own descriptors are there from now on
	require.NoError(t, err)
	require.NoError(t, l.Close())
	goroutines, files := runtime.NumGoroutine(), descriptors()
	t.Cleanup(func() {
		var g, f int
		for range 2000 {
			if g, f = runtime.NumGoroutine(), descriptors(); g <= goroutines && f <= files {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
		t.Errorf("%d goroutines and %d descriptors, began with %d and %d", g, f, goroutines, files)
	})
}

// descriptors returns how many files the process has open, or 0 if the system doesn't list them.
func descriptors() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// countedListener counts the bytes that the server reads from all of its connections.
type countedListener struct {
	net.Listener
	read atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedReads{c, &l.read}, nil
}

type countedReads struct {
	net.Conn
	n *atomic.Int64
}

func (c countedReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// liveHeap returns the bytes that the program's objects and stacks take.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // sync.Pool keeps its objects for one collection
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
