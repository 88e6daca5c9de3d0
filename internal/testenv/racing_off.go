//go:build !race

package testenv

// Racing reports whether the race detector is on. Tests then take ten times as long.
const Racing = false
