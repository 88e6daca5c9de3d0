// Package decisions compares the cost of decisions about rate limits if the counters are in one Redis. It measures
// redisstore, redisstore with one script call for each key, the Prepaid layer, and limiters of others. It also
// measures plain commands, which decide nothing and show the minimum cost.
//
// Each caller takes one unit at a time. The callers use the same key (hot) or 16384 keys in turn (many). These
// takes never reach their limit. In each round, the callers also share a limit that they exceed. All takes up to
// this limit must pass, and no others.
package decisions
