// Package rig is what suites about Redis run on: a Redis of their own, clients of it, and
// the processor time that this process took.
package rig
