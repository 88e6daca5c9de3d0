// Package ratecheck checks a rate limiter from outside. [Run] has several processes take from one
// subject and log when each take was sent and when its reply was received; [Check] reports whether the
// limiter kept its rule.
//
// All processes, and the server that decides, are on one machine and read one clock: the decision was
// made between the two times. Check assumes nothing else, so it has no false alarms. It finds more the
// sooner replies come.
//
// The clock is the system's, which Redis uses, too. If it is set meanwhile, both the limiter and Check
// are wrong.
package ratecheck
