package session

import (
	"crypto/sha256"
	"encoding/base64"
)

// ID names the session, for as long as it lives: to count by, or to log. It is a hash
// that leads nobody to the session. "" means that there is none, which a write of this
// request doesn't change before it is saved.
func (s *Session) ID() (string, error) {
	snap, err := s.load(s.c)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.liveLocked(snap) {
		return "", nil
	}
	sum := sha256.Sum256(snap.token.locator[:])
	return base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}
