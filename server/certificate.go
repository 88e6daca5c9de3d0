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

// certificateCheck is the minimum time between two checks of a certificate's files.
const certificateCheck = time.Second

// certificate is a key pair from two files. It has no goroutine: the files are checked when a client connects, and
// read again if they have changed. Files that are missing or do not match, for example during a replacement, are
// ignored.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	pair              atomic.Pointer[tls.Certificate]

	mu      sync.Mutex
	checked time.Time
	loaded  [2]os.FileInfo // the files of the pair
	failure string         // the last error of the files; "" if they are in use
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

// load reads the files unless they are those of the pair.
func (c *certificate) load() (changed bool, err error) {
	var files [2]os.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		if files[i], err = os.Stat(name); err != nil {
			return false, err
		}
	}
	if c.pair.Load() != nil && unchanged(files[0], c.loaded[0]) && unchanged(files[1], c.loaded[1]) {
		return false, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false, err
	}
	c.pair.Store(&pair)
	c.loaded = files
	return true, nil
}

// unchanged reports whether a and b are the same file with the same size and time. A file that replaces another by a
// rename may have the same size and time.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
