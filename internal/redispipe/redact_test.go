package redispipe

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"OOM command not allowed": "OOM command not allowed",
		"ERR unknown command 'evalsha', with args beginning with: 'secret' ": "ERR unknown command 'evalsha'",
		"MOVED 1234 app:secret": "MOVED",
		"ERR unknown command 'app:secret', with args beginning with: 'x'": "ERR",
	} {
		got := Redact(redacted(text), "app:")
		require.EqualError(t, got, want)
		var reply redis.Error
		require.True(t, errors.As(error(got), &reply))
	}
}
