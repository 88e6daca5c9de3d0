package proxy

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/nginxtest"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// startNginx starts an nginx that serves the files in docs. It returns nginx's URL and this folder.
func startNginx(tb testing.TB) (url, docs string) {
	tb.Helper()
	port, err := testhost.ReservePort()
	require.NoError(tb, err)
	tb.Cleanup(port.Release)
	dir := tb.TempDir()
	docs = filepath.Join(dir, "docs")
	require.NoError(tb, os.Mkdir(docs, 0o755))
	require.NoError(tb, os.Chmod(dir, 0o755))
	nginxtest.Start(tb, port.Addr(), fmt.Sprintf(`
		server {
			listen %[1]s; root %[2]s; client_max_body_size 0;
			location ~ ^/public/(twice/.*)$ { proxy_pass http://%[1]s/inner/$1; }
			location /seen { return 200 "$request_method $request_uri $http_x_forwarded_for $server_protocol"; }
		}`, port.Addr(), docs))
	return "http://" + port.Addr(), docs
}

// TestDownloadFromNginx checks that the proxy's memory stays small during a download of 1 GB.
func TestDownloadFromNginx(t *testing.T) {
	url, docs := startNginx(t)
	file, err := os.Create(filepath.Join(docs, "large"))
	require.NoError(t, err)
	const size = 1 << 28
	require.NoError(t, file.Truncate(size)) // a sparse file, which takes no space on the disk
	_, err = file.WriteAt([]byte("last"), size-4)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	p := run(t, limited(t, url, "10/60s"))
	require.Equal(t, "GET /seen?x=%20y 127.0.0.1 HTTP/1.1", p.get(t, "/seen?x=%20y").body)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := p.client.Get(p.url + "/large")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.EqualValues(t, size, res.ContentLength)
	last := &tail{}
	n, err := io.CopyBuffer(last, res.Body, make([]byte, 256<<10))
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.Equal(t, "last", string(last.bytes))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "what was allocated, garbage included")

	half, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/large", nil)
	require.NoError(t, err)
	half.Header.Set("Range", fmt.Sprintf("bytes=%d-", size-4))
	res, err = p.client.Do(half)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "last", string(body))
}

func TestUploadToNginx(t *testing.T) {
	p := run(t, limited(t, behind(t, hashing).URL, "10/60s"))
	const size = 1 << 28
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want := sha256.New()
	a := p.do(t, "POST", "/", io.TeeReader(io.LimitReader(zeros{}, size), want))
	require.Equal(t, fmt.Sprintf("%x", want.Sum(nil)), a.body)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

// TestDenialsBehindNginx checks that clients get every denial if nginx is in front of the proxy. By default, nginx
// sends requests over HTTP/1.0.
func TestDenialsBehindNginx(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "1/h"))
	require.True(t, p.passes(t, "/"))
	port, err := testhost.ReservePort()
	require.NoError(t, err)
	t.Cleanup(port.Release)
	nginxtest.Start(t, port.Addr(), fmt.Sprintf(`
		server { listen %s; client_max_body_size 0; location / { proxy_pass %s; } }`, port.Addr(), p.url))
	for _, size := range []int64{100_000, 1_000_000, 5_000_000} {
		for range 20 {
			res, err := p.client.Post("http://"+port.Addr(), "", io.LimitReader(zeros{}, size))
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusTooManyRequests, res.StatusCode, "%d bytes", size)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// tail is a writer that keeps the last bytes written to it.
type tail struct{ bytes []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes[:0], p[max(0, len(p)-4):]...)
	return len(p), nil
}
