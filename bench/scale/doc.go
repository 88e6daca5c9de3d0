// Package scale simulates many machines that share one store. The simulation runs as a test, because its clock is that of
// testing/synctest:
//
//	go test ./scale -v         # 100 machines, 100 thousand decisions a second
//	go test ./scale -v -full   # a million decisions a second
//
// It counts the calls of the store, and checks that no key gets more than its limit in any interval, although some machines
// reach the store late, and others die with units that they have taken in advance.
package scale
