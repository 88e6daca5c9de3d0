package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{
		0: "Kind(0)", Take: "take", Peek: "peek", Add: "add", Count: "count", Refund: "refund", Reset: "reset", 7: "Kind(7)",
	} {
		require.Equal(t, want, kind.String())
	}
}
