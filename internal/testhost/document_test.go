package testhost

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsedUserHasDocumentedRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redis.md")
	text := "# Users\n\n    ACL SETUSER readers on >secret ~k* +get\n    ACL SETUSER writers on >secret ~k* +get +set\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	words := ParseUser(t, file, "writers")
	require.Equal(t, []string{"on", ">secret", "~k*", "+get", "+set"}, words)
	s := StartRedis(t)
	s.SetUser("writers", words)
	c := s.ClientAs("writers")
	require.NoError(t, c.Set(t.Context(), "k1", "v", 0).Err())
	require.ErrorContains(t, c.Get(t.Context(), "other").Err(), "NOPERM")
	s.SetUser("writers", ParseUser(t, file, "readers"))
	require.ErrorContains(t, c.Set(t.Context(), "k1", "v", 0).Err(), "NOPERM", "what was allowed before is gone")
}
