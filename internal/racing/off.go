//go:build !race

// Package racing tells tests of the race detector, under which they take ten times as long.
package racing

// Enabled reports whether the race detector is on.
const Enabled = false
