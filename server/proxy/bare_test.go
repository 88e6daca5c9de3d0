package proxy

import (
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/bareproxy"
)

// The bare proxy of the benchmarks has the same settings of connections as ours.
func TestBareProxyHasSameConnections(t *testing.T) {
	p, err := New(parse(t, "upstreams: {main: {url: 'http://127.0.0.1:1'}}"), Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer p.Close()
	ours, bare := fields(p.current.Load().upstreams["main"].transport), fields(bareproxy.Transport())
	require.Contains(t, ours, "MaxIdleConnsPerHost")
	require.Equal(t, ours, bare)

	ours, bare = fields(p.Server().http), fields(bareproxy.Server(p))
	for _, ownWay := range []string{"BaseContext", "ConnState", "ErrorLog"} { // to stop, and to log
		delete(ours, ownWay)
		delete(bare, ownWay)
	}
	require.Contains(t, ours, "ReadHeaderTimeout")
	require.Equal(t, ours, bare)

	h := bareproxy.Handler(&url.URL{}, http.DefaultTransport)
	require.Len(t, h.BufferPool.Get(), len(buffers.Get()))
}

// fields returns the exported fields of the struct that v points to. For fields that can't be
// compared, it reports whether they are set.
func fields(v any) map[string]any {
	s := reflect.ValueOf(v).Elem()
	out := map[string]any{}
	for i := range s.NumField() {
		f, name := s.Field(i), s.Type().Field(i)
		switch {
		case !name.IsExported():
		case f.Kind() == reflect.Func, f.Kind() == reflect.Interface:
			out[name.Name] = !f.IsNil()
		default:
			out[name.Name] = f.Interface()
		}
	}
	return out
}
