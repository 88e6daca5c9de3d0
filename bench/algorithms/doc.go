// Package algorithms measures how far each rule of package ratelimit is from "at most Limit in any Per". It measures how
// many units too many can pass in a window if clients attack the rule, and how many units are denied although they could
// pass. It runs the real rules on the memory store. The clock is simulated, so the figures are the same on every machine.
//
// A window is half open. It is measured in whole microseconds, like the time of the rules.
package algorithms
