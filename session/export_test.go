package session

// Turns returns the number of fields that are being updated, or for which an update waits.
func (m *Manager) Turns() (n int) {
	m.turns.Range(func(any, any) bool { n++; return true })
	return n
}
