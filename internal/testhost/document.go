package testhost

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ParseUser returns the rules after ACL SETUSER and the user's name in a document.
func ParseUser(tb testing.TB, document, user string) (words []string) {
	tb.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		tb.Fatalf("testhost: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rule, ok := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER "+user+" "); ok {
			return strings.Fields(rule)
		}
	}
	tb.Fatalf("testhost: %s has no ACL SETUSER %s", document, user)
	return nil
}

// SetUser creates a user with these rules and no others.
func (s *Redis) SetUser(user string, words []string) {
	s.tb.Helper()
	args := []any{"ACL", "SETUSER", user, "reset"}
	for _, word := range words {
		args = append(args, word)
	}
	if err := s.Client(nil).Do(s.tb.Context(), args...).Err(); err != nil {
		s.tb.Fatalf("testhost: %v", err)
	}
}

// ClientAs returns a client that logs in as a user with the password secret.
func (s *Redis) ClientAs(user string) *redis.Client {
	return s.Client(func(o *redis.Options) { o.Username, o.Password = user, "secret" })
}
