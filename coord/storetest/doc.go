// Package storetest tests implementations of coord.TokenStore and coord.LeaseStore, alone and under
// concurrency. A store's own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) storetest.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It does not test bounds and network failures.
package storetest
