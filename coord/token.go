package coord

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"
)

// maxTombstone bounds how long a token is remembered after its time is over.
const maxTombstone = 24 * time.Hour

// State is what became of a token.
type State int

// The states of a token. Usable is the only one that it leaves.
const (
	Usable State = 1 + iota
	Used
	Expired // and was never used
	Revoked
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Usable:
		return "usable"
	case Used:
		return "used"
	case Expired:
		return "expired"
	case Revoked:
		return "revoked"
	}
	return "unknown"
}

// Err returns the error of a Use in this state: nil if the token is usable.
func (s State) Err() error {
	switch s {
	case Usable:
		return nil
	case Used:
		return ErrUsed
	case Expired:
		return ErrExpired
	case Revoked:
		return ErrRevoked
	}
	return ErrUnknown
}

// Token is what is known of a token. Its id is not. Times are by the store's clock, and
// zero for what did not happen.
type Token struct {
	State     State
	Metadata  []byte // as it was issued; the caller's to keep
	Issued    time.Time
	Expires   time.Time // it can be used until then
	Forgotten time.Time // … and inspected until then
	Used      time.Time
	UsedBy    string
	Revoked   time.Time
}

// Tokens are permissions to do something once. A token is issued under an id, which is
// passed to the one who may do it. All methods may be called concurrently; each is one call of
// the store.
//
// An id is a credential. The store gets only its SHA-256, and no error has it in its text.
type Tokens struct{ store TokenStore }

// NewTokens returns the tokens in store.
func NewTokens(store TokenStore) (*Tokens, error) {
	if store == nil {
		return nil, errors.New("coord: no store")
	}
	return &Tokens{store}, nil
}

// NewID returns an id that cannot be guessed: 256 random bits in base64url, 43 characters.
func NewID() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// Issue makes a token that can be used once within ttl. The id is from [NewID], or the
// caller's own, such as that of an order which is to be shipped once; then it should not
// be one that others can guess and must not use. An id that was issued before is
// ErrExists until it is forgotten: ttl after its end, and at most a day after it.
//
// After ErrStore, or the end of ctx, the token may exist, unless the error is redisstore.ErrNotSent:
// Inspect says so.
func (t *Tokens) Issue(ctx context.Context, id string, metadata []byte, ttl time.Duration) error {
	key, err := tokenKey(id)
	if err != nil {
		return err
	}
	if len(metadata) > MaxMetadata {
		return invalid("the metadata has %d bytes, want at most %d", len(metadata), MaxMetadata)
	}
	if err := checkTime("the token's time", ttl); err != nil {
		return err
	}
	return t.store.Issue(ctx, key, metadata, ttl, min(ttl, maxTombstone))
}

// Use uses a token, and succeeds exactly once, whatever the concurrency. by says who does,
// for those who inspect the token later; it may be empty. What was used, expired or revoked
// before is ErrUsed, ErrExpired or ErrRevoked, and the Token then says when and by whom,
// without its metadata. ErrUnknown is a token that never was, or is forgotten; nothing is
// left in the store of it.
//
// After ErrStore, or the end of ctx, the token may be used, unless the error is redisstore.ErrNotSent: if
// by is different for each attempt, Inspect says whether it was this one.
func (t *Tokens) Use(ctx context.Context, id, by string) (Token, error) {
	key, err := tokenKey(id)
	if err != nil {
		return Token{}, err
	}
	if err := checkName("who uses the token", by); err != nil {
		return Token{}, err
	}
	return t.store.Use(ctx, key, by)
}

// Inspect returns what is known of a token, in whatever state, and changes nothing. The error is
// ErrUnknown if there is none.
//
// A Use or a Revoke that failed with ErrStore may still be on its way to Redis: Inspect then says
// usable, and the token is used a moment later. What Inspect says is final only for the other states.
func (t *Tokens) Inspect(ctx context.Context, id string) (Token, error) {
	key, err := tokenKey(id)
	if err != nil {
		return Token{}, err
	}
	return t.store.Inspect(ctx, key)
}

// Revoke makes a token unusable. It returns ErrUsed if the token was used, ErrExpired or
// ErrUnknown if it could not be used any more, and nil if it was revoked before.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	key, err := tokenKey(id)
	if err != nil {
		return err
	}
	return t.store.Revoke(ctx, key)
}

func tokenKey(id string) (TokenKey, error) {
	if id == "" {
		return TokenKey{}, invalid("the token's id is empty")
	}
	return sha256.Sum256([]byte(id)), nil
}
