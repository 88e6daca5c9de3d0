package coord

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// maxTombstone is the maximum time for which a token is remembered after it has expired.
const maxTombstone = 24 * time.Hour

// State is the state of a token.
type State int

// The states of a token. Only a usable token changes its state.
const (
	Usable State = 1 + iota
	Used
	Expired // was not used before
	Revoked
)

// String returns the state's name.
func (s State) String() string {
	if s < Usable || s > Revoked {
		return "unknown"
	}
	return [...]string{Usable: "usable", Used: "used", Expired: "expired", Revoked: "revoked"}[s]
}

// Err returns the error that Use returns in this state, or nil if the token is usable.
func (s State) Err() error {
	if s < Usable || s > Revoked {
		return ErrUnknown
	}
	return [...]error{Used: ErrUsed, Expired: ErrExpired, Revoked: ErrRevoked}[s]
}

// Token describes a token, without its id. Times are by the store's clock. The time of an event that did not happen
// is zero.
type Token struct {
	State     State
	Metadata  []byte // the bytes of Issue; the caller may change them
	Issued    time.Time
	Expires   time.Time // the end of the time in which the token can be used
	Forgotten time.Time // the end of the time in which the token can be inspected
	Used      time.Time
	UsedBy    string
	Revoked   time.Time
}

// Tokens issues tokens and uses them. A token is a permission to do something once. It has an id, which the user of
// the token presents. All methods are safe for concurrent use. Each makes one store call.
//
// An id is a credential. The store gets only its SHA-256, and errors do not contain it.
type Tokens struct{ store TokenStore }

// NewTokens returns the tokens in store. It returns an error if store is nil.
func NewTokens(store TokenStore) (*Tokens, error) {
	if option.IsNil(store) {
		return nil, errors.New("coord: NewTokens: store is nil")
	}
	return &Tokens{store}, nil
}

// NewID returns a random id for a token. It has 256 random bits, and is 43 characters of base64url.
func NewID() string {
	b := make([]byte, 32)
	rand.Read(b) // never returns an error
	return base64.RawURLEncoding.EncodeToString(b)
}

// Issue makes a token that can be used once within ttl. The id comes from [NewID], or from the caller, such as the
// number of an order that must be shipped only once. Anyone who can guess the id can use the token. Issue returns
// ErrExists if the id was issued before and has not been forgotten. The id is forgotten ttl after the token expires,
// or a day after it expires if that is earlier.
//
// After ErrStore, or the end of ctx, the token may exist, unless the error is redisstore.ErrNotSent. Call Inspect to
// find out.
func (t *Tokens) Issue(ctx context.Context, id string, metadata []byte, ttl time.Duration) error {
	key, err := tokenKey(id)
	if err != nil {
		return err
	}
	if len(metadata) > MaxMetadata {
		return invalidArgument("the metadata has %d bytes, want at most %d", len(metadata), MaxMetadata)
	}
	if ttl < MinTime || ttl > MaxTime {
		return invalidArgument("the token's ttl is %v, want %v to %v", ttl, MinTime, MaxTime)
	}
	return t.store.Issue(ctx, key, metadata, ttl, min(ttl, maxTombstone))
}

// Use uses a token. If several calls are concurrent, exactly one of them succeeds. by is the name of the token's
// user, which Inspect returns. It may be empty. For a token that was used, has expired or was revoked, Use returns
// ErrUsed, ErrExpired or ErrRevoked, and the token without its metadata. For a token that was never issued, or is
// forgotten, it returns ErrUnknown and stores nothing.
//
// After ErrStore, or the end of ctx, the token may have been used, unless the error is redisstore.ErrNotSent. If each
// attempt passes a different by, Inspect shows which attempt succeeded.
func (t *Tokens) Use(ctx context.Context, id, by string) (Token, error) {
	key, err := tokenKey(id)
	if err == nil {
		err = checkName("the name of the token's user", by)
	}
	if err != nil {
		return Token{}, err
	}
	return t.store.Use(ctx, key, by)
}

// Inspect returns a token in any state and changes nothing. It returns ErrUnknown if there is no such token.
//
// A Use or a Revoke that failed with ErrStore may still be on its way to Redis, so a usable token may be used a moment
// later. The other states are final.
func (t *Tokens) Inspect(ctx context.Context, id string) (Token, error) {
	key, err := tokenKey(id)
	if err != nil {
		return Token{}, err
	}
	return t.store.Inspect(ctx, key)
}

// Revoke makes a token unusable. It returns ErrUsed, ErrExpired or ErrUnknown if the token was not usable, and nil if it
// was revoked before.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	key, err := tokenKey(id)
	if err != nil {
		return err
	}
	return t.store.Revoke(ctx, key)
}

func tokenKey(id string) (TokenKey, error) {
	if id == "" {
		return TokenKey{}, invalidArgument("the token's id is empty")
	}
	return sha256.Sum256([]byte(id)), nil
}
