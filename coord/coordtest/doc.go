// Package coordtest holds every coord.TokenStore and coord.LeaseStore to the same promises,
// alone and under concurrency. A store's own tests call Run:
//
//	coordtest.Run(t, coordtest.Host{
//		Open:    func(t *testing.T) coordtest.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It says nothing about bounds and failing networks.
package coordtest
