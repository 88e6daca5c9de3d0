// Package redisinfo reads what a Redis says that it has done.
package redisinfo
