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
	// ErrNotSent means that a call was not sent, perhaps because the handshake of its connection
	// failed: its script did not run.
	ErrNotSent = errors.New("redis: not sent")
	// ErrNoReply means that a call got no reply in time, that its connection broke or that its reply
	// is unreadable: its script may have run.
	ErrNoReply = errors.New("redis: no reply")
	// ErrUnreadable means that a reply is not what the script returns. It wraps [ErrNoReply].
	ErrUnreadable = option.WithText("redis: unreadable reply", ErrNoReply)

	// errGarbled is why a call was not sent if the reply to something before it is unreadable.
	errGarbled = errors.New("unreadable reply")
)

// callError returns the error of a call that was in a state, queued or sent, when its round trip
// failed for a reason: an error reply, or why there is no reply.
func (q *queue) callError(was int32, reason error) error {
	var dial *dialError
	var reply redis.Error
	garbled := reason == ErrUnreadable || unreadable(reason)
	switch {
	case errors.As(reason, &dial):
		reason = because(ErrNotSent, dial.cause())
	case errors.As(reason, &reply) && was == queued: // to the handshake
		reason = because(ErrNotSent, reply)
	case errors.As(reason, &reply):
	case timedOut(reason):
		return q.lateError(was)
	case was == queued && garbled:
		reason = because(ErrNotSent, errGarbled)
	case was == queued:
		reason = because(ErrNotSent, reason)
	case garbled:
		reason = ErrUnreadable
	default:
		reason = because(ErrNoReply, reason)
	}
	return &nodeError{q.addr, reason}
}

// lateError returns the error of a call that was in a state, queued or sent, at its deadline.
func (q *queue) lateError(was int32) error {
	if was == queued {
		return &nodeError{q.addr, because(ErrNotSent, q.dials.failure())}
	}
	return &nodeError{q.addr, ErrNoReply}
}

// because adds a reason to an error. The reason may be nil.
func because(err, reason error) error {
	if reason == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// slotsError returns the error of a call that has no node because the slots could not be loaded.
func (r *cluster) slotsError(err error) error {
	switch {
	case unreadable(err):
		err = fmt.Errorf("%w: %w", ErrNotSent, errGarbled)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: no node has sent the Cluster's slots", ErrNotSent)
	default:
		err = fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return &nodeError{strings.Join(r.client.Options().Addrs, ","), err}
}

// nodeError is the error of a call to the node at an address.
type nodeError struct {
	addr string
	err  error
}

func (e *nodeError) Error() string {
	return "redis " + e.addr + ": " + strings.TrimPrefix(e.err.Error(), "redis: ")
}

func (e *nodeError) Unwrap() error { return e.err }

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

// guard calls f and returns an error if f panics, as a client's hook may: the panic must not end
// the round trip of other calls.
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
	Store   error  // wraps the error of every failed call
	KeyType error  // is returned for a reply that begins with WRONGTYPE or FOREIGN
	Prefix  string // of the store's keys, which no error quotes
}

// Wrap returns a store's error for that of a call. The cause of ctx's end is returned as it is.
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

// redact returns an error reply without keys, which begin with prefix, and arguments.
func redact(reply redis.Error, prefix string) redis.Error {
	text, _, _ := strings.Cut(reply.Error(), ", with args beginning with")
	if strings.Contains(text, prefix) {
		text, _, _ = strings.Cut(text, " ")
	}
	if text == reply.Error() {
		return reply // of its own type
	}
	return redacted(text)
}

// redacted is the rest of an error reply.
type redacted string

func (r redacted) Error() string { return string(r) }

// RedisError marks r as a redis.Error.
func (redacted) RedisError() {}
