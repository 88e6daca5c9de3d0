// Package faults looks for known faults of rate limiters and session libraries. It runs lazyreq and its peers, and
// writes a table of the results. The table has no numbers that vary between runs. Those are in the progress.
package faults
