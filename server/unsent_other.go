//go:build !linux

package server

import "net"

// boundUnsent does nothing: only Linux can bound what waits to be sent.
func boundUnsent(net.Conn) {}
