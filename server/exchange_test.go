package server

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The allocator gives objects of more than 512 bytes a header, which costs each request some 60 ns.
func TestExchangeIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(exchange{}), uintptr(512))
}
