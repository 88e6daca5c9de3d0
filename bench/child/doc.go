// Package child runs this program again, as child processes with a role, and other
// programs, each on processors of its own: so that what is measured shares none with what
// measures it.
package child
