package graceful

import (
	"net"
	"syscall"
)

// dropSYN makes the kernel drop packets that begin a handshake with a TCP listener. Earlier handshakes and connections
// continue. The client of a dropped packet tries again a second later, and then the closed listener refuses it.
func dropSYN(l any) {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	const flags, syn = 13, 1 << 1 // in the TCP header
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
		{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: syn, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 1<<32 - 1},
	}
	_ = raw.Control(func(fd uintptr) {
		//lint:ignore SA1019 four instructions do not justify the dependency golang.org/x/net/bpf
		_ = syscall.AttachLsf(int(fd), filter)
	})
}
