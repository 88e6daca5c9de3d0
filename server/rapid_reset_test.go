package server_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// maxStreams is how many requests of one HTTP/2 connection are handled at once: net/http's default.
const maxStreams = 250

// rapidReset opens streams and resets each at once, until the server ends the connection or stop is closed.
// It returns how many streams it has opened.
func rapidReset(c net.Conn, stop <-chan struct{}) (opened int) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	defer func() { c.Close(); <-ended }()
	b := h2Start()
	for stream := uint32(1); stream < 1<<31; stream += 2 {
		b = appendFrame(b, frameHeaders, endStream|endHeaders, stream, getBlock)
		b = appendFrame(b, frameReset, 0, stream, "\x00\x00\x00\x08") // CANCEL
		if opened++; opened%100 != 0 {
			continue
		}
		if _, err := c.Write(b); err != nil {
			return opened
		}
		b = b[:0]
		select {
		case <-stop:
			return opened
		default:
		}
	}
	return opened
}

// A client that opens and resets streams as fast as it can (CVE-2023-44487) doesn't have more than maxStreams
// requests handled at once: its handlers go on after the reset if they don't watch their context. More that
// wait for them end the connection. Other clients are served meanwhile.
func TestRapidResets(t *testing.T) {
	const attackers = 4
	for name, deaf := range map[string]bool{"handlers that heed the reset": false, "handlers that go on": true} {
		t.Run(name, func(t *testing.T) {
			releases(t)
			srv, logs := newServer(t, server.Options{})
			var running, most, handled atomic.Int64
			release := make(chan struct{})
			srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
				handled.Add(1)
				n := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if deaf {
					<-release
					return nil
				}
				<-req.Context().Done()
				return req.Context().Err()
			})
			srv.HandleFunc("GET /other", func(w http.ResponseWriter, _ *server.Request) error {
				_, err := io.WriteString(w, "here")
				return err
			})
			url, c := h2Server(t, srv)
			c.Timeout = 10 * time.Second
			stop := make(chan struct{})
			var opened atomic.Int64
			attack := make(chan struct{})
			conns := make([]net.Conn, attackers)
			for i := range conns {
				conns[i] = dialH2(t, url)
			}
			go func() {
				defer close(attack)
				concurrently(attackers, func(i int) { opened.Add(int64(rapidReset(conns[i], stop))) })
			}()
			for range 20 {
				res, err := request(t, c, "GET", url+"/other")
				require.NoError(t, err)
				require.Equal(t, "here", res.body)
				<-time.After(10 * time.Millisecond)
			}
			if deaf {
				<-attack // the server has ended the connections
				require.LessOrEqual(t, handled.Load(), int64(attackers*maxStreams))
				close(release)
			}
			close(stop)
			<-attack
			require.LessOrEqual(t, most.Load(), int64(attackers*maxStreams))
			require.Eventually(t, func() bool { return running.Load() == 0 }, 20*time.Second, time.Millisecond)
			t.Logf("%d streams opened, %d handled, at most %d at once", opened.Load(), handled.Load(), most.Load())
			require.Empty(t, logs.at("ERROR"))
		})
	}
}

// The limit is announced to clients.
func TestMaxConcurrentStreams(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	url, _ := h2Server(t, srv)
	c := dialH2(t, url)
	_, err := c.Write(h2Start())
	require.NoError(t, err)
	f, err := readFrame(c)
	require.NoError(t, err)
	require.EqualValues(t, frameSettings, f.kind)
	settings := map[uint16]uint32{}
	for p := f.payload; len(p) >= 6; p = p[6:] {
		settings[binary.BigEndian.Uint16(p)] = binary.BigEndian.Uint32(p[2:])
	}
	require.EqualValues(t, maxStreams, settings[3])
}
