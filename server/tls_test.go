package server_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// pair is a self-signed certificate and its key.
type pair struct{ cert, key []byte }

func newPair(tb testing.TB, name string) pair {
	tb.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{"pipe"},
		NotBefore:    time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), // bubbles begin in 2000
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	cert, err := x509.CreateCertificate(nil, template, template, pub, priv)
	require.NoError(tb, err)
	key, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(tb, err)
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}

// pemFiles contains the paths of a certificate and its key. Each write sets file times that are a minute later than
// before, so that tests do not depend on the resolution of file times.
type pemFiles struct {
	tb        testing.TB
	cert, key string
	writes    int
}

func newPEMFiles(tb testing.TB, p pair) *pemFiles {
	dir := tb.TempDir()
	f := &pemFiles{tb: tb, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	f.write(p)
	return f
}

func (f *pemFiles) write(p pair) {
	f.put(f.cert, p.cert)
	f.put(f.key, p.key)
}

func (f *pemFiles) put(file string, data []byte) {
	f.writes++
	require.NoError(f.tb, os.WriteFile(file, data, 0o600))
	at := time.Unix(int64(60*f.writes), 0)
	require.NoError(f.tb, os.Chtimes(file, at, at))
}

// serveTLS runs srv on pipes until the end of the test.
func serveTLS(t *testing.T, srv *server.Server, f *pemFiles) *pipes {
	t.Helper()
	p := newPipes()
	serving(t, srv, func() error { return srv.ServeTLS(p, f.cert, f.key) })
	return p
}

// shake connects and returns the name in the server's certificate. It uses TLS 1.2, because with TLS 1.3 the server
// writes after the handshake, which blocks on a pipe.
func shake(p *pipes) (string, error) {
	conn, err := p.dial(context.Background(), "", "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}) // it is the name that counts here
	if err := c.Handshake(); err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// requireServed checks which certificate a new connection gets after the server has checked the files again.
func requireServed(t *testing.T, p *pipes, name string) {
	t.Helper()
	<-time.After(time.Second)
	got, err := shake(p)
	require.NoError(t, err)
	require.Equal(t, name, got)
}

func TestHTTPSNegotiatesItsVersion(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		return writeText(w, req.Proto, " ", req.TLS.NegotiatedProtocol)
	})
	own := newPair(t, "own")
	p := serveTLS(t, srv, newPEMFiles(t, own))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(own.cert))
	for name, tt := range map[string]struct {
		http2 bool
		want  string
	}{
		"HTTP/2":   {true, "HTTP/2.0 h2"},
		"HTTP/1.1": {false, "HTTP/1.1 "},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{
				DialContext: p.dial, ForceAttemptHTTP2: tt.http2,
				TLSClientConfig: &tls.Config{RootCAs: roots},
			}
			defer transport.CloseIdleConnections()
			res, err := request(t, &http.Client{Transport: transport}, "GET", "https://pipe/")
			require.NoError(t, err)
			require.Equal(t, tt.want, res.body)
		})
	}
	require.Empty(t, l.at(""))
}

func TestHTTPSRefusesOldTLS(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	p := serveTLS(t, srv, newPEMFiles(t, newPair(t, "own")))
	conn, err := p.dial(t.Context(), "", "")
	require.NoError(t, err)
	defer conn.Close()
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).HandshakeContext(t.Context())
	require.ErrorContains(t, err, "protocol version")
}

// TestHTTPSHandshakeTimeout checks that the server closes the connection of a client that does not begin its
// handshake.
func TestHTTPSHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		p := serveTLS(t, srv, newPEMFiles(t, newPair(t, "own")))
		conn, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		began := time.Now()
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestServeTLSNeedsItsFiles(t *testing.T) {
	own, other := newPair(t, "own"), newPair(t, "other")
	for name, tt := range map[string]struct {
		spoil func(f *pemFiles)
		want  string
		is    error
	}{
		"no certificate":       {func(f *pemFiles) { _ = os.Remove(f.cert) }, "no such file", fs.ErrNotExist},
		"a folder":             {func(f *pemFiles) { f.cert = filepath.Dir(f.cert) }, "is a directory", nil},
		"a broken certificate": {func(f *pemFiles) { f.put(f.cert, own.cert[:len(own.cert)/2]) }, "PEM", nil},
		"the key of another":   {func(f *pemFiles) { f.put(f.key, other.key) }, "match", nil},
		"two empty files":      {func(f *pemFiles) { f.write(pair{}) }, "PEM", nil},
		"no names of files":    {func(f *pemFiles) { f.cert, f.key = "", "" }, "no such file", fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			f := newPEMFiles(t, own)
			tt.spoil(f)
			p := newPipes()
			err := srv.ServeTLS(p, f.cert, f.key)
			require.ErrorContains(t, err, "server: TLS certificate "+f.cert+", key "+f.key+": ")
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			_, err = p.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			require.Equal(t, srv.ListenAndServeTLS("127.0.0.1:0", f.cert, f.key).Error(), srv.ServeTLS(p, f.cert, f.key).Error())
			require.Empty(t, l.at(""), "whoever has the error logs it")
		})
	}
}

func TestListenAndServeTLS(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	srv, _ := newServer(t, server.Options{})
	f := newPEMFiles(t, newPair(t, "own"))
	require.ErrorContains(t, srv.ListenAndServeTLS(addr, f.cert, f.key), addr)
	require.NoError(t, free.Close())
	require.NoError(t, srv.Shutdown(t.Context()))
	require.ErrorIs(t, srv.ListenAndServeTLS("127.0.0.1:0", f.cert, f.key), http.ErrServerClosed)
	p := newPipes()
	require.ErrorIs(t, srv.ServeTLS(p, f.cert, f.key), http.ErrServerClosed)
	_, err = p.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestNewCertificateIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		f := newPEMFiles(t, newPair(t, "1"))
		p := serveTLS(t, srv, f)
		requireServed(t, p, "1")
		f.write(newPair(t, "2"))
		got, err := shake(p)
		require.NoError(t, err)
		require.Equal(t, "1", got, "the files are looked at once in a second")
		requireServed(t, p, "2")
		requireServed(t, p, "2")
		f.write(newPair(t, "3"))
		requireServed(t, p, "3")
		require.Len(t, l.at("INFO"), 2)
		require.Equal(t, f.cert, l.at("INFO")[0]["file"])
		require.Len(t, l.at(""), 2)
	})
}

// While the files are wrong, the old pair is served and the error is logged once. Correct files are served.
func TestWrongFilesLeaveTheOldCertificate(t *testing.T) {
	for name, spoil := range map[string]func(f *pemFiles, next pair){
		"no certificate": func(f *pemFiles, _ pair) { require.NoError(f.tb, os.Remove(f.cert)) },
		"no key":         func(f *pemFiles, _ pair) { require.NoError(f.tb, os.Remove(f.key)) },
		"empty":          func(f *pemFiles, _ pair) { f.put(f.cert, nil) },
		"key before":     func(f *pemFiles, next pair) { f.put(f.key, next.key) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				first, next := newPair(t, "first"), newPair(t, "next")
				f := newPEMFiles(t, first)
				p := serveTLS(t, srv, f)
				requireServed(t, p, "first")
				spoil(f, next)
				for range 3 {
					requireServed(t, p, "first")
				}
				line := l.only(t)
				require.Equal(t, f.cert, line["file"])
				require.Equal(t, f.key, line["key"])
				require.NotEmpty(t, line["error"])
				f.write(next)
				requireServed(t, p, "next")
				spoil(f, first)
				for range 3 {
					requireServed(t, p, "next")
				}
				require.Len(t, l.at("ERROR"), 2, "it is another failure")
				f.write(first)
				requireServed(t, p, "first")
				require.Len(t, l.at("ERROR"), 2)
				require.Len(t, l.at("INFO"), 2)
			})
		})
	}
}

// TestCertificateFilesRestored checks that a failure is logged again if the files were right in between.
func TestCertificateFilesRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		f := newPEMFiles(t, newPair(t, "own"))
		p := serveTLS(t, srv, f)
		requireServed(t, p, "own")
		for n := range 2 {
			require.NoError(t, os.Rename(f.key, f.key+"~"))
			requireServed(t, p, "own")
			require.Len(t, l.at("ERROR"), n+1)
			require.NoError(t, os.Rename(f.key+"~", f.key))
			requireServed(t, p, "own")
		}
		require.Empty(t, l.at("INFO"))
	})
}

// Clients that connect while the files change all get a certificate.
func TestHandshakesWhileFilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		pairs := []pair{newPair(t, "0"), newPair(t, "1")}
		f := newPEMFiles(t, pairs[0])
		p := serveTLS(t, srv, f)
		for n := 1; n < 6; n++ {
			<-time.After(time.Second)
			go f.write(pairs[n%2])
			concurrently(20, func(int) {
				name, err := shake(p)
				if err != nil || name != "0" && name != "1" {
					t.Errorf("%q %v", name, err)
				}
			})
			synctest.Wait()
			requireServed(t, p, fmt.Sprint(n%2))
		}
		require.Empty(t, l.at("WARN"), "net/http logs handshakes that fail")
	})
}
