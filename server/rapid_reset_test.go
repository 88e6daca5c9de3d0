package server_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/server"
)

// maxStreams is how many requests of one HTTP/2 connection are handled at once: net/http's default.
const maxStreams = 250

// rapidReset opens n streams and resets each at once, or fewer if the server ends the connection.
func rapidReset(c net.Conn, n int) {
	b := h2Start()
	for i := range n {
		stream := uint32(2*i + 1)
		b = appendFrame(b, frameHeaders, endStream|endHeaders, stream, getBlock)
		b = appendFrame(b, frameReset, 0, stream, "\x00\x00\x00\x08") // CANCEL
		if (i+1)%100 != 0 {
			continue
		}
		if _, err := c.Write(b); err != nil {
			return
		}
		b = b[:0]
	}
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
			streams := 20_000
			if testenv.Racing {
				streams = 5_000
			}
			conns := make([]net.Conn, attackers)
			for i := range conns {
				conns[i] = dialH2(t, url)
			}
			var attack sync.WaitGroup
			for _, conn := range conns {
				attack.Go(func() {
					rapidReset(conn, streams)
					if !deaf {
						conn.Close()
					}
				})
				attack.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			}
			for range 10 {
				res, err := request(t, c, "GET", url+"/other")
				require.NoError(t, err)
				require.Equal(t, "here", res.body)
			}
			attack.Wait() // until the server ends the connections, if the handlers go on
			if deaf {
				require.LessOrEqual(t, handled.Load(), int64(attackers*maxStreams))
				close(release)
			}
			require.LessOrEqual(t, most.Load(), int64(attackers*maxStreams))
			require.Eventually(t, func() bool { return running.Load() == 0 }, 20*time.Second, time.Millisecond)
			t.Logf("%d of up to %d streams handled, at most %d at once", handled.Load(), attackers*streams, most.Load())
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
