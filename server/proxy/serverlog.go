package proxy

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// serverLog logs what net/http does: at debug what clients do wrong, as errors that a handler
// has panicked and that no connection can be accepted, which happens in a loop.
type serverLog struct {
	log    *slog.Logger
	accept seldom
}

func newServerLog(l *slog.Logger) *log.Logger { return log.New(&serverLog{log: l}, "", 0) }

// Write logs a line of net/http's.
func (s *serverLog) Write(text []byte) (int, error) {
	line := strings.TrimSpace(string(text))
	switch {
	case strings.HasPrefix(line, "http: Accept error: "):
		s.accept.log(s.log, slog.LevelError, "no connection can be accepted",
			slog.String("error", strings.TrimPrefix(line, "http: Accept error: ")))
	case strings.Contains(line, ": panic serving "): // of HTTP/1 and HTTP/2
		s.log.Error(line)
	default:
		s.log.Log(context.Background(), slog.LevelDebug, line)
	}
	return len(text), nil
}
