// Package storage helps to write a [ratelimit.Store] or a layer around one.
//
// A store calls [Validate] before it changes anything, splits the ops into [Groups], and reads
// a rule's numbers from the [Layout] that [ratelimit.Rule.Layout] returns. Package storetest
// tests stores.
package storage

import (
	"iter"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Layout holds a rule's numbers as a store computes with them:
//
//	Algorithm        how the rule counts
//	Stream           whether Redis keeps a log as a stream
//	Window, Buckets  buckets before the newest that the limit is over, and that can be counted
//	Limit            0 if the rule only counts
//	Burst            the largest n that can pass
//	Per, Interval, Span, Expiry
//	BlockAfter       denials that lead to a block, 0 without a block
//	BlockFor         length of the block
//	Name, Named      the rule's name; if Named, it distinguishes the counter, too
//	ID               a hash of what distinguishes the rule's counter from a key's other counters
//	OwnBurst, Err    for package ratelimit only
//
// Durations are in microseconds. A field that the algorithm does not use is 0.
type Layout = layout.Layout

// Algorithm is a way of counting. The zero Algorithm marks an invalid rule.
type Algorithm = layout.Algorithm

// The algorithms.
const (
	Buckets = layout.Buckets
	Log     = layout.Log
	Window  = layout.Window
	GCRA    = layout.GCRA
)

// Groups splits ops into its atomic groups, each with the index of its first op.
func Groups(ops []ratelimit.Op) iter.Seq2[int, []ratelimit.Op] {
	return func(yield func(int, []ratelimit.Op) bool) {
		for from := 0; from < len(ops); {
			to := groupEnd(ops, from)
			if !yield(from, ops[from:to]) {
				return
			}
			from = to
		}
	}
}

func groupEnd(ops []ratelimit.Op, from int) int {
	first, to := &ops[from], from+1
	if first.Kind != ratelimit.Take && first.Kind != ratelimit.Refund {
		return to
	}
	for to < len(ops) && ops[to].Kind == first.Kind && ops[to].Key == first.Key && !ops[to].NewGroup {
		to++
	}
	return to
}

// Pending returns how many units takes, which are the first ones of a group, charge to the
// counter with that [Layout] ID. A later take must pass together with these units.
func Pending(takes []ratelimit.Op, id uint64) int64 {
	var n int64
	for i := range takes {
		if takes[i].Rule.Layout().ID == id {
			n += takes[i].N
		}
	}
	return n
}
