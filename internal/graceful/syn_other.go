//go:build !linux

package graceful

// dropSYN does nothing. A connection that arrives while the listener is closed may be reset.
func dropSYN(any) {}
