//go:build !linux

package server

import "net"

// boundUnsent does nothing, because only Linux can limit unsent data.
func boundUnsent(net.Conn) {}
