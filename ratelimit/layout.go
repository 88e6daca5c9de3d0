package ratelimit

import "fmt"

// Algorithm is a way of counting. The zero Algorithm marks the zero [Rule].
type Algorithm uint8

// The algorithms.
const (
	AlgorithmBuckets Algorithm = iota + 1
	AlgorithmLog
	AlgorithmWindow
	AlgorithmGCRA
)

var algorithmNames = [...]string{AlgorithmBuckets: "buckets", AlgorithmLog: "log", AlgorithmWindow: "window", AlgorithmGCRA: "gcra"}

// String returns the algorithm's name in lower case, "" for the zero Algorithm.
func (a Algorithm) String() string {
	if int(a) >= len(algorithmNames) {
		return fmt.Sprintf("Algorithm(%d)", uint8(a))
	}
	return algorithmNames[a]
}

// Layout is what a store needs of a [Rule], as it computes with it: durations are in
// microseconds. Fields that the algorithm doesn't use are 0.
type Layout struct {
	Algorithm Algorithm
	// Window and Buckets are for buckets: how many before the newest the limit is over,
	// and how many before the newest can be counted.
	Window, Buckets int32
	// Limit is 0 if the rule only counts. Burst is the largest n that can pass.
	Limit, Burst                int64
	Per, Interval, Span, Expiry int64
	Block                       Block
	// ID is a hash of what tells the rule's counter from others of a key.
	ID uint64
}

// Layout returns a pointer to the rule's layout, which costs nothing. It is for stores,
// and must not be changed.
func (r *Rule) Layout() *Layout { return &r.layout }
