package session

// Turns returns the number of fields that updates of m wait for or have the turn of.
func (m *Manager) Turns() (n int) {
	m.turns.Range(func(any, any) bool { n++; return true })
	return n
}
