// Package storetest holds every storage.Store to the same promises, alone and
// under concurrency. A store's own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) storage.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It says nothing about bounds, eviction and failing networks.
package storetest
