// Package storetest holds every coord.TokenStore and coord.LeaseStore to the same promises,
// alone and under concurrency. A store's own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) storetest.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It says nothing about bounds and failing networks.
package storetest
