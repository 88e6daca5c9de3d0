package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/lazyreq/lazyreq/session/storage"
)

// encoding is strict so that a token has exactly one text.
var encoding = base64.RawURLEncoding.Strict()

const (
	locatorText = 22 // 16 bytes in base64url
	secretText  = 43 // 32 bytes in base64url
	tokenText   = locatorText + 1 + secretText
)

// token is what the client keeps. It exists only in the server's memory while
// a request runs.
type token struct {
	redacted
	locator storage.Locator
	secret  [32]byte
}

func newToken() token {
	var t token
	rand.Read(t.locator[:]) // never fails: crypto/rand ends the program instead
	rand.Read(t.secret[:])
	return t
}

// renewed returns a token of the same session with a new secret.
func (t token) renewed() token {
	n := newToken()
	n.locator = t.locator
	return n
}

func (t token) digest() storage.Digest { return sha256.Sum256(t.secret[:]) }

func (t token) text() string {
	return t.locator.Key() + "." + encoding.EncodeToString(t.secret[:])
}

// parseToken accepts exactly what text returns.
func parseToken(s string) (t token, ok bool) {
	if len(s) != tokenText || s[locatorText] != '.' {
		return token{}, false
	}
	n1, err1 := encoding.Decode(t.locator[:], []byte(s[:locatorText]))
	n2, err2 := encoding.Decode(t.secret[:], []byte(s[locatorText+1:]))
	// The counts matter: the decoder skips line breaks.
	if err1 != nil || err2 != nil || n1 != len(t.locator) || n2 != len(t.secret) {
		return token{}, false
	}
	return t, true
}
