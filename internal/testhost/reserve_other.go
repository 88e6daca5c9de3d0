//go:build !linux

package testhost

import (
	"fmt"
	"net"
)

// reserve only finds a port that is free now: this system does not let a listener share its port.
func reserve(number int) (*Port, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: number})
	if err != nil {
		return nil, fmt.Errorf("testhost: port %d: %w", number, err)
	}
	defer l.Close()
	return &Port{number: l.Addr().(*net.TCPAddr).Port, free: func() {}}, nil
}
