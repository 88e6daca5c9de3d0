package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateCheck is the minimum time between two checks of a certificate's files.
const certificateCheck = time.Second

// certificate is a key pair from two files. It has no goroutine: the files are read when a client connects. Files that
// are missing or do not match, for example during a replacement, are ignored.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	pair              atomic.Pointer[tls.Certificate]

	mu        sync.Mutex
	checked   time.Time
	cert, key []byte // the contents of the pair's files
	failure   string // the last error of the files; "" if they are in use
}

// Certificate reads a key pair from two PEM files, for the field GetCertificate of a [tls.Config]. When the files
// change, new connections get the new pair. While the new files are missing or wrong, which is logged, they get the
// old one.
func Certificate(certFile, keyFile string, log *slog.Logger) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if _, err := c.load(); err != nil {
		return nil, fmt.Errorf("server: TLS certificate %s, key %s: %w", certFile, keyFile, err)
	}
	return c.get, nil
}

// get is called by crypto/tls for each handshake. One of several concurrent calls checks the files, and the others
// use the current pair.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		if now := time.Now(); now.Sub(c.checked) >= certificateCheck {
			c.checked = now
			c.refresh()
		}
	}
	return c.pair.Load(), nil
}

// refresh loads the files and logs a change. It logs each failure once.
func (c *certificate) refresh() {
	changed, err := c.load()
	switch {
	case err == nil:
		c.failure = ""
		if changed {
			c.log.Info("TLS certificate reloaded", "file", c.certFile)
		}
	case err.Error() != c.failure:
		c.failure = err.Error()
		c.log.Error("TLS certificate not reloaded; the old one stays in use", "file", c.certFile, "key", c.keyFile, "error", err)
	}
}

// load reads the files. It reports whether they have changed.
func (c *certificate) load() (changed bool, err error) {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil || c.pair.Load() != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return false, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, err
	}
	c.pair.Store(&pair)
	c.cert, c.key = cert, key
	return true, nil
}
