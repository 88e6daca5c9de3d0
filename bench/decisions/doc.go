// Package decisions compares what decisions about rate limits cost when the counters are
// in one Redis: ours as it is, with one script call for each key, and prepaid; limiters of others;
// and bare commands, which decide nothing and show where the floor is.
//
// Callers take one unit each of one key (hot) or of 16384 keys in turn (many). The limit
// is never reached then. In each round there is also a limit that is: of the takes
// beyond it none may pass, of those below it all must.
package decisions
