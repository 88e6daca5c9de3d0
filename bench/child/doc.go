// Package child starts child processes: this program in another role, and other programs. Each process has processors of
// its own, so that the measured program does not share a processor with the program that measures it.
package child
