package server_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// flooded serves GET / until the end of the test. read counts the bytes that the server reads, and called counts the
// handler's calls.
func flooded(t *testing.T, serve func(*server.Server, net.Listener) error) (addr string, read, called *atomic.Int64) {
	srv, _ := newServer(t, server.Options{IdleTimeout: 500 * time.Millisecond})
	called = new(atomic.Int64)
	srv.HandleFunc("/", func(http.ResponseWriter, *server.Request) error { called.Add(1); return nil })
	inner := listenTCP(t)
	l := &countedListener{Listener: inner}
	serving(t, srv, func() error { return serve(srv, l) })
	return inner.Addr().String(), &l.read, called
}

// If a header is longer than MaxHeaderBytes, the server stops reading soon and answers 431.
func TestHeaderFloodsAreRefused(t *testing.T) {
	releases(t)
	addr, read, called := flooded(t, (*server.Server).Serve)
	begins := map[string]string{"long request line": "GET /"}
	floods := map[string][]byte{}
	for name, part := range map[string]string{
		"long request line": "a", "long field": "a",
		"many fields":      "\r\nA: b",
		"many values":      "\r\nCookie: a=b",
		"many names":       "\r\n" + strings.Repeat("n", 60) + ": b",
		"continued fields": "\r\n b",
	} {
		begins[name] = cmp.Or(begins[name], "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ")
		floods[name] = []byte(strings.Repeat(part, 1<<20/len(part)))
	}
	const clients = 60
	names := slices.Collect(maps.Keys(floods))
	before := liveHeap()
	concurrently(clients, func(i int) {
		name := names[i%len(names)]
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		go func() { // until the server closes the connection
			_, _ = io.WriteString(conn, begins[name])
			for err := error(nil); err == nil; {
				_, err = conn.Write(floods[name])
			}
		}()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || line != "HTTP/1.1 431 Request Header Fields Too Large\r\n" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
	})
	require.LessOrEqual(t, read.Load(), int64(clients*(64+8)<<10))
	require.Zero(t, called.Load())
	require.Less(t, liveHeap()-before, int64(clients*64<<10), "what the headers took is garbage")
}

// Header blocks over HTTP/2 are limited, too: endless ones (the CONTINUATION flood) and short ones that expand to
// long headers (the HPACK bomb). net/http ignores empty CONTINUATION frames until the IdleTimeout, because they need
// no memory.
func TestHTTP2HeaderFloodsAreRefused(t *testing.T) {
	releases(t)
	const clients = 10
	// bomb adds a field of 3 KiB to the dynamic table. One byte then repeats this field.
	bomb := "\x40\x01a\x7f\x81\x17" + strings.Repeat("v", 3072)
	for name, tt := range map[string]struct {
		first, next string
		flags       byte // of the first frame, besides END_STREAM
		ends        bool // with the first frame
	}{
		"many fields":          {"", strings.Repeat("\x00\x01a\x01b", 3000), 0, false},
		"one field":            {"\x00\x01a\x7f\x80\xff\xff\x7f", strings.Repeat("v", 16<<10), 0, false},
		"empty continuations":  {"", "", 0, false},
		"repetitions":          {bomb + strings.Repeat("\xbe", 12<<10), "", endHeaders, true},
		"repetitions, endless": {bomb, strings.Repeat("\xbe", 16<<10), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newPEMFiles(t, newPair(t, "127.0.0.1"))
			addr, read, called := flooded(t, func(srv *server.Server, l net.Listener) error {
				return srv.ServeTLS(l, files.cert, files.key)
			})
			start := appendFrame(h2Start(), frameHeaders, endStream|tt.flags, 1, getBlock+tt.first)
			next := appendFrame(nil, frameContinuation, 0, 1, tt.next)
			if tt.next == "" {
				for range 1000 {
					next = appendFrame(next, frameContinuation, 0, 1, "")
				}
			}
			concurrently(clients, func(int) {
				conn := dialH2(t, addr)
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				if tt.ends {
					_, err := conn.Write(start)
					if err != nil || responseTo(conn, 1) == nil {
						t.Error("no response", err)
					}
					return
				}
				go func() {
					_, err := conn.Write(start)
					for err == nil {
						_, err = conn.Write(next)
					}
				}()
				_, err := io.Copy(io.Discard, conn)
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Error("the server goes on reading")
				}
			})
			t.Logf("%d bytes read from a client", read.Load()/clients)
			if name != "empty continuations" {
				require.Less(t, read.Load(), int64(clients*80<<10))
			}
			require.Zero(t, called.Load())
		})
	}
}

// responseTo reads frames until the header of the response on a stream, and returns this frame. If the connection
// ends before, it returns nil.
func responseTo(r io.Reader, stream uint32) *h2Frame {
	for {
		f, err := readFrame(r)
		if err != nil {
			return nil
		}
		if f.kind == frameHeaders && f.stream == stream {
			return &f
		}
	}
}

// Types and flags of HTTP/2 frames (RFC 9113, section 6).
const (
	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4
	framePing, frameGoAway, frameContinuation          = 6, 7, 9

	endStream, endHeaders = 1, 4
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// h2Frame is one frame that a server sent.
type h2Frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// appendFrame appends a frame to b.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload string) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

func readFrame(r io.Reader) (h2Frame, error) {
	var h [9]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return h2Frame{}, err
	}
	f := h2Frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)}
	f.payload = make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// These header blocks in HPACK have a GET or a POST to "/" of the host x.
const (
	getBlock  = "\x82\x87\x84\x01\x01x"
	postBlock = "\x83\x87\x84\x01\x01x"
)

// dialH2 opens a connection over TLS that sends only what the test writes.
func dialH2(t *testing.T, url string) net.Conn {
	t.Helper()
	d := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// h2Start returns the preface and the settings of a client.
func h2Start() []byte { return appendFrame([]byte(preface), frameSettings, 0, 0, "") }
