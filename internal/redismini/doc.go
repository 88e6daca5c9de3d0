// Package redismini gives tests a Redis in their own process, whose time they turn:
// miniredis. What a store does on it does not depend on ways that only the real server has,
// for which there is package redistest.
package redismini
