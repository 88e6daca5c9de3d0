package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateCheck is the shortest time between two checks of a certificate's files.
const certificateCheck = time.Second

// certificate is a key pair from two files, read again when they have changed. It
// starts no goroutine: the files are checked when a client connects. Files that
// are missing or do not fit together, as they may while they are being replaced,
// leave the old pair in use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	pair atomic.Pointer[tls.Certificate]

	mu      sync.Mutex
	checked time.Time
	loaded  fileState // of the pair in use
	failure string    // why the files could not be used last time, "" if they could
}

// fileState identifies the content of two files.
type fileState struct{ cert, key os.FileInfo }

func (s fileState) same(t fileState) bool {
	return unchanged(s.cert, t.cert) && unchanged(s.key, t.key)
}

// unchanged reports whether a and b are one file with the same size and time. Files that were
// renamed into place differ even if size and time are equal.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Certificate reads a key pair from two PEM files, for the field GetCertificate of a
// [tls.Config]: when the files change, new connections get the new pair, and as long as
// the new files are missing or wrong, which is logged, they get the old one.
func Certificate(certFile, keyFile string, log *slog.Logger) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	c, err := loadCertificate(certFile, keyFile, log)
	if err != nil {
		return nil, err
	}
	return c.get, nil
}

// loadCertificate reads the files for the first time, when an error is final.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	state, err := c.state()
	if err == nil {
		err = c.load(state)
	}
	if err != nil {
		return nil, fmt.Errorf("server: TLS certificate %s, key %s: %w", certFile, keyFile, err)
	}
	return c, nil
}

// get is called by crypto/tls for each handshake. Of several at once, one checks the files and
// the others use the current pair.
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

// refresh reads the files if they have changed since the pair in use. It logs a
// failure once, and tries again until the files are right.
func (c *certificate) refresh() {
	state, err := c.state()
	if err == nil && state.same(c.loaded) {
		c.failure = ""
		return
	}
	if err == nil {
		err = c.load(state)
	}
	switch {
	case err == nil:
		c.failure = ""
		c.log.Info("TLS certificate reloaded", "file", c.certFile)
	case err.Error() != c.failure:
		c.failure = err.Error()
		c.log.Error("TLS certificate not reloaded; the old one stays in use", "file", c.certFile, "key", c.keyFile, "error", err)
	}
}

func (c *certificate) load(state fileState) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair.Store(&pair)
	c.loaded = state
	return nil
}

func (c *certificate) state() (s fileState, err error) {
	if s.cert, err = os.Stat(c.certFile); err != nil {
		return s, err
	}
	s.key, err = os.Stat(c.keyFile)
	return s, err
}
