//go:build race

package racing

// Enabled reports whether the race detector is on.
const Enabled = true
