package ratelimit

import "context"

// Store runs ops. It is safe for concurrent use.
//
// Do runs ops in order and returns one result for each. Consecutive takes on one key are a group, unless [Op.NewGroup]
// separates them, and so are consecutive refunds on one key. Every other op is a group of its own. A group is atomic.
// All takes of a group are charged, or none: if one is denied, no result of the group is Allowed, and Violated marks
// the rules that denied. Each refund of a group gives back what it can.
//
// Do checks all ops before it changes anything. A failure of the store wraps [ErrStore]; groups before it may have
// been charged. DoOne is Do for a single op.
//
// The store allocates the results. After a method has returned, the ops and the results belong to the caller. A type
// that embeds a Store, to change a method, has to change both. Package storage helps to write stores, and package
// storetest tests them.
type Store interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
	DoOne(ctx context.Context, op Op) (Result, error)
}
