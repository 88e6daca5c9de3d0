// Package harness compares this library with others in a single run on a single machine. The contenders take
// turns, round by round. Their medians are compared, and the published result is a ratio. Absolute figures of a
// shared machine mean little, but two figures from the same minute can be compared.
package harness
