package proxy

import (
	"context"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stop starts Shutdown and returns once responses announce it. The channel gets the result.
func (r *running) stop(tb testing.TB) <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.server.Shutdown(context.WithoutCancel(tb.Context())) }()
	require.Eventually(tb, r.server.graceful.Ending, 20*time.Second, time.Millisecond)
	return stopped
}

// A client that sends a request on an idle or a new connection after the stop has begun gets a
// response with Connection: close.
func TestStopIsAnnouncedToIdleConnections(t *testing.T) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	p := run(t, limited(t, behind(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- struct{}{}
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
	}).URL, "2/h"))
	p.server.graceful.Window = time.Minute
	const request = " HTTP/1.1\r\nHost: a\r\n\r\n"
	idle, denied, busy, late := p.upload(t, "GET /"+request), p.upload(t, ""), p.upload(t, ""), p.upload(t, "")
	require.False(t, idle.answer(t).Close)
	busy.send(t, "GET /slow"+request)
	<-asked
	denied.send(t, "GET /"+request)
	require.Equal(t, 429, denied.answer(t).StatusCode)

	stopped := p.stop(t)
	late.send(t, "GET /"+request)
	idle.send(t, "GET /"+request)
	denied.send(t, "GET /status/x"+request)
	close(answer)
	for name, client := range map[string]*uploading{"idle": idle, "denied": denied, "busy": busy, "late": late} {
		require.True(t, client.answer(t).Close, name)
		client.ends(t)
	}
	require.NoError(t, <-stopped, "as soon as there is no connection")
}

// Idle connections are closed after the drain window.
func TestIdleConnectionsAreClosed(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "9/h"))
	require.Equal(t, time.Second, p.server.graceful.Window)
	p.server.graceful.Window = 50 * time.Millisecond
	idle := p.upload(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.False(t, idle.answer(t).Close)
	require.NoError(t, <-p.stop(t))
	idle.ends(t)
}

// A stop ends HTTP/2 connections that have requests all the time, and loses none.
func TestStopEndsBusyHTTP2Connections(t *testing.T) {
	p := overTLS(t, limited(t, behind(t, nil).URL, "1000000/h"))
	ended := make(chan error, 1)
	p.get(t, "/")
	go func() {
		for {
			res, err := p.client.Get(p.url)
			if err != nil {
				ended <- err
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	require.NoError(t, <-p.stop(t))
	require.ErrorIs(t, <-ended, syscall.ECONNREFUSED)
}
