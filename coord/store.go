package coord

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Limits of arguments. Stores may rely on them.
const (
	MaxMetadata = 64 << 10         // bytes of a token's metadata
	MaxName     = 1 << 10          // bytes of the name of a user, a holder, or the user of a token
	MinTime     = time.Millisecond // shortest and longest of times and intervals
	MaxTime     = 100 * 365 * 24 * time.Hour
)

// KeepNumber is how long a store keeps a user's last fencing number after a lease. The next number is larger even if the
// store's clock is set back by that much meanwhile.
const KeepNumber = time.Hour

// TokenStore stores tokens. Packages memstore and redisstore implement it; package storetest tests implementations.
// All methods are safe for concurrent use. [Tokens] has checked the arguments. If ctx has ended, the error is its
// cause. Any other failure wraps [ErrStore]. Times are by the store's clock.
type TokenStore interface {
	// Issue makes a token that can be used for ttl and is remembered for keep after that. It returns ErrExists if there
	// is a token with this key.
	Issue(ctx context.Context, key TokenKey, metadata []byte, ttl, keep time.Duration) error
	// Use marks a usable token as used and returns it. For any other token it returns ErrUsed, ErrExpired or ErrRevoked,
	// and the token without metadata. It returns ErrUnknown, and stores nothing, if there is no token.
	Use(ctx context.Context, key TokenKey, by string) (Token, error)
	// Inspect returns a token and changes nothing. It returns ErrUnknown if there is no such token.
	Inspect(ctx context.Context, key TokenKey) (Token, error)
	// Revoke makes a token unusable. It returns ErrUnknown, ErrUsed or ErrExpired if the token is not usable, and nil if
	// it was revoked before.
	Revoke(ctx context.Context, key TokenKey) error
}

// LeaseStore stores leases. The documentation of [TokenStore] about concurrency, arguments, errors and times applies to
// it.
type LeaseStore interface {
	// Acquire grants the lease of a user to r.ID, for r.Lifetime from now, and returns the fencing number, which is
	// larger than all earlier numbers of this user. It returns a *DeniedError, and changes nothing, if the lease is
	// not free. After any other error the store tries to release a lease that it may have granted, without delaying
	// the caller.
	Acquire(ctx context.Context, user string, r LeaseRequest) (number int64, err error)
	// Renew extends the lease, if r.ID holds it, to r.Lifetime from now. It never shortens the lease. It returns ErrLost if
	// r.ID does not hold it.
	Renew(ctx context.Context, user string, r LeaseRequest) error
	// Release ends the lease. It returns ErrLost if r.ID does not hold it.
	Release(ctx context.Context, user string, r LeaseRequest) error
}

// TokenKey is the SHA-256 of a token's id; stores do not get the id. It formats as "[redacted]".
type TokenKey [32]byte

// Format writes "[redacted]" for every verb.
func (TokenKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// LeaseRequest describes a lease to a store.
type LeaseRequest struct {
	// ID is a random secret of one attempt to acquire the lease. It proves that a renewal or a release comes from the
	// holder.
	ID [16]byte
	// Name is the holder's name.
	Name string
	// Lifetime is the time from the call of Acquire or Renew to the end of the lease.
	Lifetime time.Duration
	// MinInterval is the one of [LeaseOptions]. It is the same in all calls for one lease.
	MinInterval time.Duration
}

func checkName(what, name string) error {
	if len(name) > MaxName {
		return invalidArgument("%s has %d bytes, want at most %d", what, len(name), MaxName)
	}
	return nil
}
