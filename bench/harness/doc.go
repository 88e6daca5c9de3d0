// Package harness compares us with others, in one run on one machine: contenders
// take turns round by round, medians are compared, and what is published is a
// ratio. Absolute figures of a shared machine mean little; two figures of the same
// minute can be divided.
package harness
