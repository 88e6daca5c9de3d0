package session

// Turns returns the number of fields that updates of m wait for or have the turn of.
func (m *Manager) Turns() int {
	m.turns.mu.Lock()
	defer m.turns.mu.Unlock()
	return len(m.turns.last)
}
