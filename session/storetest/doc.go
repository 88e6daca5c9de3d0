// Package storetest holds every session.Store to the same promises, alone and
// under concurrency. A store's own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) session.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It says nothing about bounds, eviction and failing networks.
package storetest
