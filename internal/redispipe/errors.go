package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/option"
)

var (
	// ErrNotSent means that a call was not sent, for example because the handshake of its connection failed. The script
	// did not run.
	ErrNotSent = errors.New("redis: not sent")
	// ErrNoReply means that a call got no reply in time, that its connection broke, or that its reply is unreadable. The
	// script may have run.
	ErrNoReply = errors.New("redis: no reply")
	// ErrUnreadable means that the script cannot have returned the reply. It wraps [ErrNoReply].
	ErrUnreadable = option.WithText("redis: unreadable reply", ErrNoReply)

	// errGarbled is the reason for ErrNotSent if the reply to a handshake or to a load of the slots is unreadable.
	errGarbled = errors.New("unreadable reply")
)

// callError returns the error of a call whose round trip failed. was is the state of the call at that time. reason is an
// error reply, or explains why there is no reply.
func (q *queue) callError(was int32, reason error) error {
	var dial *dialError
	var reply redis.Error
	var timeout net.Error
	isReply := errors.As(reason, &reply)
	garbled := !isReply && unreadable(reason)
	switch {
	case errors.As(reason, &dial):
		reason = because(ErrNotSent, dial.cause())
	case errors.As(reason, &timeout) && timeout.Timeout():
		return q.lateError(was)
	case was == queued && garbled:
		reason = because(ErrNotSent, errGarbled)
	case was == queued: // only the handshake can have got an error reply
		reason = because(ErrNotSent, reason)
	case garbled:
		reason = ErrUnreadable
	case !isReply:
		reason = because(ErrNoReply, reason)
	}
	return &nodeError{q.addr, reason}
}

// lateError returns the error of a call that missed its deadline. was is the state of the call at that time.
func (q *queue) lateError(was int32) error {
	if was == queued {
		return &nodeError{q.addr, ErrNotSent}
	}
	return &nodeError{q.addr, ErrNoReply}
}

// because returns an error that wraps err and the reason for it.
func because(err, reason error) error { return fmt.Errorf("%w: %w", err, reason) }

// slotsError returns the error of a call whose node is not known, because the slots could not be loaded.
func (r *cluster) slotsError(err error) error {
	switch {
	case unreadable(err):
		err = errGarbled
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("no node has sent the Cluster's slots")
	}
	return &nodeError{strings.Join(r.client.Options().Addrs, ","), because(ErrNotSent, err)}
}

// nodeError is the error of a call for the node at an address.
type nodeError struct {
	addr string
	err  error
}

func (e *nodeError) Error() string {
	return "redis " + e.addr + ": " + strings.TrimPrefix(e.err.Error(), "redis: ")
}

func (e *nodeError) Unwrap() error { return e.err }

// unreadable reports whether err means that go-redis could not parse a reply. The text of such an error quotes the reply.
func unreadable(err error) bool {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return true
	}
	for _, words := range []string{"can't parse", "invalid reply", "out of range", "unreadable reply"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// guard calls f and returns an error if f panics. A panic in a client's hook must not affect the other calls in a round
// trip.
func guard(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("redis: panic in the client: %v", v)
		}
	}()
	f()
	return nil
}

// Failures describes the errors that a store returns for failed calls.
type Failures struct {
	Store   error  // every error wraps it, unless KeyType replaces the error
	KeyType error  // replaces a reply that begins with WRONGTYPE or FOREIGN
	Prefix  string // the beginning of the store's keys, which errors must not contain
}

// Wrap returns the store's error for the error of a call. If err is the cause of the end of ctx, Wrap returns err itself.
func (f Failures) Wrap(ctx context.Context, err error) error {
	var reply redis.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "FOREIGN"):
		return f.KeyType
	case errors.As(err, &reply):
		redacted := error(redact(reply, f.Prefix))
		if errors.Is(err, ErrNotSent) {
			redacted = because(ErrNotSent, redacted)
		}
		if at := (*nodeError)(nil); errors.As(err, &at) {
			redacted = &nodeError{at.addr, redacted}
		}
		err = redacted
	}
	return fmt.Errorf("%w: %w", f.Store, err)
}

// redact removes arguments and keys from an error reply. Keys begin with prefix.
func redact(reply redis.Error, prefix string) redis.Error {
	text, _, _ := strings.Cut(reply.Error(), ", with args beginning with")
	if strings.Contains(text, prefix) {
		text, _, _ = strings.Cut(text, " ")
	}
	if text == reply.Error() {
		return reply // keeps its own type
	}
	return redacted(text)
}

// redacted is the text of an error reply from which parts were removed.
type redacted string

func (r redacted) Error() string { return string(r) }

// RedisError implements [redis.Error].
func (redacted) RedisError() {}
