package session

import "context"

// These are requirements of a route: see [server.Require].
//
// [server.Require]: https://pkg.go.dev/github.com/lazyreq/lazyreq/server#Require
var (
	// Loaded fails if the session cannot be loaded.
	Loaded = Requirement{name: "session"}
	// LoggedIn fails if the session cannot be loaded, or with [ErrNotBound], which is a 401 as a
	// response, if no user is bound to it.
	LoggedIn = Requirement{name: "session.LoggedIn", user: true}
)

// Requirement is the type of [Loaded] and [LoggedIn].
type Requirement struct {
	name string
	user bool
}

// Name returns the requirement's name.
func (r Requirement) Name() string { return r.name }

// String returns the requirement's name.
func (r Requirement) String() string { return r.name }

// Start begins to load the session of ctx's request, unless it is loaded or being loaded, and returns
// at once.
func (r Requirement) Start(ctx context.Context) error { return sessionKey.Start(ctx) }

// Require loads the session of ctx's request if necessary, and returns an error if the requirement is
// not met.
func (r Requirement) Require(ctx context.Context) error {
	if !r.user {
		return sessionKey.Require(ctx)
	}
	_, err := RequireUser(ctx)
	return err
}
