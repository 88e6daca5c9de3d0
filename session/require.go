package session

import "context"

// These are requirements of a route: see [server.Require].
//
// [server.Require]: https://pkg.go.dev/github.com/lazyreq/lazyreq/server#Require
var (
	// Loaded fails if the session cannot be loaded.
	Loaded loaded
	// LoggedIn fails if the session cannot be loaded, or with [ErrNotBound], which is a 401 as a
	// response, if no user is bound to it.
	LoggedIn loggedIn
)

type loaded struct{}

// Name makes Loaded a property, which a route may prefetch.
func (loaded) Name() string { return sessionKey.Name() }

func (l loaded) String() string { return l.Name() }

func (loaded) Start(ctx context.Context) error { return sessionKey.Start(ctx) }

func (loaded) Require(ctx context.Context) error { return sessionKey.Require(ctx) }

type loggedIn struct{}

func (loggedIn) String() string { return "session.LoggedIn" }

func (loggedIn) Start(ctx context.Context) error { return sessionKey.Start(ctx) }

func (loggedIn) Require(ctx context.Context) error {
	_, err := RequireUser(ctx)
	return err
}
