package ratelimit

import "time"

// Block denies a key for a fixed time once it has been denied too often: the After-th take that
// the rule denies within one Per of the first one blocks the key for this rule for the time For.
// After 1 blocks at the first denial. The zero Block never does.
//
// While it lasts, every take and peek is denied, with a RetryAfter of what is left of it,
// or of the rule's own wait if that is longer, and Remaining is 0. Takes that it denies do
// not prolong it. Add and Count ignore a block, and Reset ends it.
type Block struct {
	After int           // 1 to 2^31 - 1
	For   time.Duration // whole microseconds
}

const maxAfter = 1<<31 - 1
