package coord

import (
	"context"
	"fmt"
	"io"
	"time"
)

// TokenStore keeps tokens. Packages memstore and redisstore have one; package storetest tests
// others. All methods are safe for concurrent use. [Tokens] has checked their arguments. An ended
// ctx gives its cause; every failure wraps ErrStore. Times are the store's.
type TokenStore interface {
	// Issue makes a token that can be used for ttl, and is kept for keep more. If there
	// is one already, the error is ErrExists.
	Issue(ctx context.Context, key TokenKey, metadata []byte, ttl, keep time.Duration) error
	// Use marks a usable token as used, and returns it. Of a token that is not usable it
	// returns all but the metadata, and ErrUsed, ErrExpired or ErrRevoked; of none,
	// ErrUnknown, and leaves nothing.
	Use(ctx context.Context, key TokenKey, by string) (Token, error)
	// Inspect returns a token, and changes nothing. The error is ErrUnknown for none.
	Inspect(ctx context.Context, key TokenKey) (Token, error)
	// Revoke makes a token unusable. The error is ErrUnknown, ErrUsed or ErrExpired if
	// it is not usable anyway, and nil if it was revoked before.
	Revoke(ctx context.Context, key TokenKey) error
}

// LeaseStore keeps leases. What is said of [TokenStore] holds for it, too.
type LeaseStore interface {
	// Acquire gives the lease of a user to r.ID, for r.Lifetime from now, and returns the
	// fencing number. The number is larger than all that were given for this user before.
	// A *DeniedError says that it can't, and then nothing has changed. After any other
	// error the store does what it can to leave the lease to others, without the caller.
	Acquire(ctx context.Context, user string, r LeaseRequest) (number int64, err error)
	// Renew prolongs the lease, if r.ID holds it, to r.Lifetime from now, but not beyond
	// r.MaxLife from when it began. It returns how long the lease lasts from now, and
	// ErrMaxLife if that could not be made longer. If r.ID doesn't hold it, the error is
	// ErrLost.
	Renew(ctx context.Context, user string, r LeaseRequest) (left time.Duration, err error)
	// Release ends the lease, if r.ID holds it; otherwise the error is ErrLost.
	Release(ctx context.Context, user string, r LeaseRequest) error
	// Holder returns the holder of a user's lease, and whether there is one.
	Holder(ctx context.Context, user string) (h Holder, held bool, err error)
}

// TokenKey is the SHA-256 of a token's id, which is all that a store learns of it. It
// formats as "[redacted]".
type TokenKey [32]byte

// Format writes "[redacted]" for every verb.
func (TokenKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// LeaseRequest is what a store is told of a lease. Of one lease it is always the same.
type LeaseRequest struct {
	// ID is random, of one attempt to acquire a lease: only who knows it renews and
	// releases.
	ID [16]byte
	// Name is of who asks, for Holder.
	Name string
	// Lifetime, MaxLife and MinInterval are those of [LeaseOptions]; MaxLife is not 0.
	Lifetime, MaxLife, MinInterval time.Duration
	// KeepNumber is how long the user's last fencing number is kept after a lease, so that the
	// next one is larger even if the store's clock is set back by so much meanwhile.
	KeepNumber time.Duration
}

// Holder is who holds a lease.
type Holder struct {
	Name         string
	Number       int64     // the fencing number
	Since, Until time.Time // by the store's clock; Until moves with each renewal
}
