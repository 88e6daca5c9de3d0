package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrNotSent means that a call was not sent in time: its script did not run.
	ErrNotSent = errors.New("redis: not sent in time")
	// ErrNoReply means that a call got no reply in time, or that its connection broke: its
	// script may have run.
	ErrNoReply = errors.New("redis: no reply")
	// ErrUnreadable means that a reply is not what the script returns.
	ErrUnreadable = errors.New("redis: unreadable reply")
)

// lost makes the error of a call whose round trip failed without a reply.
func lost(err error) error {
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch {
	case op != nil && op.Timeout() && !dialing:
		return ErrNoReply
	case errors.Is(err, context.DeadlineExceeded): // no connection could be had
		return ErrNotSent
	case dialing, errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	case unreadable(err):
		return ErrUnreadable
	}
	return fmt.Errorf("%w: %w", ErrNoReply, err)
}

// unsent makes the error of a call that found no node, since loading the slots failed.
func unsent(err error) error {
	if unreadable(err) {
		err = ErrUnreadable
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// unreadable reports whether go-redis could not read a reply. Its errors quote it.
func unreadable(err error) bool {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return true
	}
	for _, words := range []string{"can't parse", "invalid reply", "out of range"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// guard calls f, and returns an error if it panics, as a client's hook may: that must not end
// the round trip that others are part of.
func guard(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("redis: panic in the client: %v", v)
		}
	}()
	f()
	return nil
}
