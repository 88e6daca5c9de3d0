// Package redismini gives tests a Redis in their own process whose clock they set: miniredis. Package
// redistest has the real server.
package redismini
