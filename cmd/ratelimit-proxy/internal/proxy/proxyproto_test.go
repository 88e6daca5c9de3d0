package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestPROXYProtocolOfClients(t *testing.T) {
	up := behind(t, nil)
	conf := func(from string) config.Config {
		return parse(t, "listen: [{address: '127.0.0.1:0', proxy_protocol: [%s]}]\nupstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 1/60s}]\n", from, up.URL)
	}
	const request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	const announced = "PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n"
	p := run(t, conf("127.0.0.0/8"))
	require.Contains(t, p.send(t, announced+request), "200 OK")
	require.Equal(t, "192.0.2.7", up.last.Load().Header.Get("X-Forwarded-For"))
	require.Contains(t, p.send(t, announced+request), "429 ", "counted by the announced address")
	require.Contains(t, p.send(t, strings.Replace(announced, "2.7", "2.8", 1)+request), "200 OK")
	require.Contains(t, p.send(t, "PROXY UNKNOWN\r\n"+request), "200 OK")
	require.Equal(t, "127.0.0.1", up.last.Load().Header.Get("X-Forwarded-For"))
	n := up.n.Load()
	require.Empty(t, p.send(t, request), "a required header is missing")
	for range 9 {
		require.Empty(t, p.send(t, "PROXY TCP4 nonsense\r\n"+request))
	}
	logged := p.log.lines("without the required PROXY protocol header")
	require.NotEmpty(t, logged)
	require.Less(t, len(logged), 5, "one in a minute")
	require.Contains(t, logged[0], `"from":"127.0.0.1:`)

	p = run(t, conf("192.0.2.1"))
	require.Contains(t, p.send(t, announced+request), "400 ", "a header from another address")
	require.Equal(t, n, up.n.Load())
	require.Contains(t, p.send(t, request), "200 OK")
}
