package server

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// An exchange fits into 512 bytes. Larger objects have a header in the heap, which costs each request about 60 ns.
func TestExchangeIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(exchange{}), uintptr(512))
}
