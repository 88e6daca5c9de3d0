// Package redisinfo reads the statistics of a Redis server.
package redisinfo
