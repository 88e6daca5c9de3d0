package coord

import (
	"context"
	"fmt"
	"io"
	"time"
)

// These limits of arguments have been checked before a store is called.
const (
	MaxMetadata = 64 << 10                   // maximum number of bytes of a token's metadata
	MaxName     = 1 << 10                    // maximum number of bytes of the name of a user, a holder, or the user of a token
	MinTime     = time.Millisecond           // the shortest lifetime or interval
	MaxTime     = 100 * 365 * 24 * time.Hour // the longest lifetime or interval
)

// KeepNumber is how long a store keeps a user's last fencing number after a lease. Until then, the next number is
// larger even if the store's clock is set back.
const KeepNumber = time.Hour

// TokenStore stores tokens. Packages memstore and redisstore implement it. Package storetest tests implementations.
// All methods are safe for concurrent use. [Tokens] checks the arguments before each call. If ctx has ended, the
// methods return its cause. Any other failure wraps [ErrStore]. Times are by the store's clock.
type TokenStore interface {
	// Issue makes a token that can be used for ttl. The store remembers it for keep after that. Issue returns
	// ErrExists if there is a token with this key.
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

// LeaseStore stores leases. What [TokenStore] says about concurrency, arguments, errors and times also applies to
// LeaseStore.
type LeaseStore interface {
	// Acquire grants the lease of a user to r.ID for r.Lifetime from now. It returns the fencing number, which is
	// larger than all earlier numbers of this user. If the lease is not free, it returns a *DeniedError and changes
	// nothing. After any other error, the store may have granted the lease. It then tries to release the lease in the
	// background.
	Acquire(ctx context.Context, user string, r LeaseRequest) (number int64, err error)
	// Renew extends the lease to r.Lifetime from now, and never shortens it. It returns ErrLost if r.ID does not hold
	// the lease.
	Renew(ctx context.Context, user string, r LeaseRequest) error
	// Release ends the lease. It returns ErrLost if r.ID does not hold the lease.
	Release(ctx context.Context, user string, r LeaseRequest) error
}

// TokenKey is the SHA-256 of a token's id. Stores do not get the id itself. A TokenKey formats as "[redacted]".
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
	// MinInterval is [LeaseOptions].MinInterval. It is the same in all calls for a lease.
	MinInterval time.Duration
}

func checkName(what, name string) error {
	if len(name) > MaxName {
		return invalidArgument("%s has %d bytes, want at most %d", what, len(name), MaxName)
	}
	return nil
}
