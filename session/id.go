package session

// ID names the session, for as long as it lives: to count by, or to log. It is a hash
// that leads nobody to the session, the same as Info has. "" means that there is none,
// which a write of this request doesn't change before it is saved.
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
	return infoID(snap.token.locator), nil
}
