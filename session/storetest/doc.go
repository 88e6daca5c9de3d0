// Package storetest checks that a [session.Store] keeps the promises of its interface,
// alone and under concurrency. A store's own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) session.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It doesn't test bounds, eviction and failing networks.
package storetest
