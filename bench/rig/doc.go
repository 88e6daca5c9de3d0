// Package rig provides what suites with Redis need: a Redis of their own, its clients, and the processor time of
// this process.
package rig
