// Package ratecheck checks a rate limiter from outside. [Run] lets several processes take
// from one subject and log each take with when it was sent and when it was answered;
// [Check] says whether a limiter that keeps its rule can have answered so.
//
// All processes, and the server that decides, are on one machine and read one clock: the
// decision was made between the two times. Nothing else is known of when. Check blames a
// limiter only for what it did wrong wherever in between it decided, so it has no false
// alarms; what it finds is the more, the sooner answers come.
//
// The clock is the system's, which Redis decides by. If somebody sets it meanwhile, the
// limiter and Check see it alike, and both are wrong.
package ratecheck
