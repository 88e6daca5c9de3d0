// Package option checks what options of package ratelimit and those below it have in common.
package option

import (
	"fmt"
	"time"
)

// MaxDuration is the longest duration: sums of some of them and of times don't overflow.
const MaxDuration = 100 * 365 * 24 * time.Hour

// MaxCount is the largest number of things that there is room for, or a place to wait.
const MaxCount = 1 << 30

// Duration returns what is wrong with a field's value. The field begins the error, as in
// "layer: LeaseOptions.Timeout".
func Duration(field string, d, least time.Duration) error {
	if d < least || d > MaxDuration {
		return fmt.Errorf("%s is %v, want %v to %v", field, d, least, MaxDuration)
	}
	return nil
}

// Count returns what is wrong with a field's value.
func Count(field string, n, least int) error {
	if n < least || n > MaxCount {
		return fmt.Errorf("%s is %d, want %d to %d", field, n, least, MaxCount)
	}
	return nil
}
