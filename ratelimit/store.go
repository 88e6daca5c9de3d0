package ratelimit

import "context"

// Store runs ops. It is safe for concurrent use.
//
// Do runs ops in order and returns one result for each. Consecutive takes on the same key form a group, unless
// [Op.NewGroup] separates them. So do consecutive refunds on the same key. Every other op is a separate group. A
// group is atomic. Either all takes of a group are charged or none: if a take is denied, no result of the group is
// Allowed, and Violated marks the rules that denied. Each refund of a group gives back as much as it can.
//
// Do checks all ops before it changes anything. A failure of the store wraps [ErrStore]. The groups before the
// failure may have been charged. DoOne is Do for a single op.
//
// The store allocates the results. After a method has returned, the ops and the results belong to the caller. A type
// that embeds a Store, to change a method, has to change both. Package storage helps to write stores, and package
// storetest tests them.
type Store interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
	DoOne(ctx context.Context, op Op) (Result, error)
}
