package testhost

import (
	"fmt"
	"os"
	"syscall"
)

// reserve binds a socket to the port, or to any port if number is 0. It never listens on the socket. With SO_REUSEADDR,
// which Go and Redis set too, Linux lets a listener share the port with such a socket, and does not assign the port as
// a free port.
func reserve(number int) (*Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("testhost: %w", os.NewSyscallError("socket", err))
	}
	if number, err = bind(fd, number); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("testhost: port %d: %w", number, err)
	}
	return &Port{number: number, free: func() { _ = syscall.Close(fd) }}, nil
}

func bind(fd, number int) (int, error) {
	addr := &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}
	if err := syscall.Bind(fd, addr); err != nil {
		return number, os.NewSyscallError("bind", err)
	}
	// The option is set only now, so that the bind fails if a server listens on the port or the port is reserved.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return number, os.NewSyscallError("setsockopt", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return number, os.NewSyscallError("getsockname", err)
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}
