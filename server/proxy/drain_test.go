package proxy

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stop starts Shutdown and returns once the server is stopping. The channel gets the result.
func (r *running) stop(tb testing.TB) <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.server.Shutdown(context.WithoutCancel(tb.Context())) }()
	require.Eventually(tb, r.stopping.Load, 20*time.Second, time.Millisecond)
	return stopped
}

// A client that sends a request on an idle connection after the stop has begun gets a response
// with Connection: close.
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
	p.server.window = time.Minute
	const request = " HTTP/1.1\r\nHost: a\r\n\r\n"
	idle, denied, busy := p.upload(t, "GET /"+request), p.upload(t, ""), p.upload(t, "")
	require.False(t, idle.answer(t).Close)
	busy.send(t, "GET /slow"+request)
	<-asked
	denied.send(t, "GET /"+request)
	require.Equal(t, 429, denied.answer(t).StatusCode)

	stopped := p.stop(t)
	late := p.upload(t, "GET /"+request)
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
	require.Equal(t, time.Second, p.server.window)
	p.server.window = 50 * time.Millisecond
	idle := p.upload(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.False(t, idle.answer(t).Close)
	require.NoError(t, <-p.stop(t))
	idle.ends(t)
}
