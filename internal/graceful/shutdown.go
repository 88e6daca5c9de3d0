// Package graceful shuts an [http.Server] down without leaving connections behind.
package graceful

import (
	"context"
	"net/http"
	"time"
)

// interval is how often connections that have become HTTP/2 meanwhile are asked to end.
const interval = 500 * time.Millisecond

// Shutdown is s.Shutdown(ctx), except that it also ends HTTP/2 connections that were in their TLS handshake
// when it began. Each Shutdown of net/http sends GOAWAY only to those that it finds, and waits for all
// (https://go.dev/issue/81153): one of them would delay it until its IdleTimeout, or for ever if it has
// requests again and again.
func Shutdown(ctx context.Context, s *http.Server) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, interval)
		err := s.Shutdown(attempt)
		tooLate := err != nil && attempt.Err() != nil
		cancel()
		switch {
		case !tooLate:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
