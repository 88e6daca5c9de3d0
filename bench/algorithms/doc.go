// Package algorithms measures how far each rule of package ratelimit is from "at most
// Limit in any Per": how much more gets through in any window, against adversaries, and
// how much is denied that need not be. It runs the real rules on the memory store by a
// clock of its own, so its figures are the same on every machine.
//
// A window is half open and is measured in whole microseconds, as the rules' time is.
package algorithms
