package server_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

// The start of a header block in HPACK: indexed fields, and :path and :authority as they are.
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

// h2Start is the preface and the settings of a client.
func h2Start() []byte { return appendFrame([]byte(preface), frameSettings, 0, 0, "") }
