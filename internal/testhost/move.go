package testhost

import "context"

// Move is the move of a slot from one master of a Cluster to another. Until it ends, the new master serves moved and new
// keys, and the old one serves the others.
type Move struct {
	c        *Cluster
	slot     int
	from, to *node
}

// BeginMove begins to move a slot to another master. It moves no key yet.
func (c *Cluster) BeginMove(slot int, to *Redis) *Move {
	c.tb.Helper()
	ctx := context.Background()
	m := &Move{c: c, slot: slot, from: c.owner(slot)}
	for _, n := range c.liveNodes() {
		if n.Redis == to {
			m.to = n
		}
	}
	must(c.tb, m.to.admin.Do(ctx, "cluster", "setslot", slot, "importing", m.from.id).Err())
	must(c.tb, m.from.admin.Do(ctx, "cluster", "setslot", slot, "migrating", m.to.id).Err())
	return m
}

// MoveKeys moves up to n keys of the slot and returns the number of moved keys.
func (m *Move) MoveKeys(n int) int {
	m.c.tb.Helper()
	ctx := context.Background()
	keys, err := m.from.admin.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	must(m.c.tb, err)
	if len(keys) == 0 {
		return 0
	}
	host, port := m.to.hostPort()
	args := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, k := range keys {
		args = append(args, k)
	}
	must(m.c.tb, m.from.admin.Do(ctx, args...).Err())
	return len(keys)
}

// End moves the remaining keys and ends the move for all nodes.
func (m *Move) End() {
	m.c.tb.Helper()
	for m.MoveKeys(100) > 0 {
	}
	// The new owner is first, so that the slot always has an owner.
	nodes := []*node{m.to, m.from}
	for _, n := range m.c.liveNodes() {
		if n != m.to && n != m.from && n.role().master {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		must(m.c.tb, n.admin.Do(context.Background(), "cluster", "setslot", m.slot, "node", m.to.id).Err())
	}
	m.c.owner(m.slot) // waits until all nodes know the new owner
}

// MoveSlot moves a slot to another master while clients use it.
func (c *Cluster) MoveSlot(slot int, to *Redis) {
	c.tb.Helper()
	c.BeginMove(slot, to).End()
}
