package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// Bind binds the session to user when it is saved. It creates a session if there is none. Call it at login: the session
// gets a new secret, and all earlier cookies become invalid at once, so that a planted or stolen cookie gives no
// access. The values stay, such as a visitor's cart. If the session is bound to another user, Bind first destroys it.
//
// user is any string of 1 to 1024 bytes, preferably an id that never changes. If it is longer, Bind returns
// [ErrTooLarge]. The store keeps the user with the session, unencrypted.
func (s Session) Bind(user string) error {
	if user == "" {
		return errors.New("session: Bind: user is empty")
	}
	if len(user) > storage.MaxUser {
		return option.WithText(fmt.Sprintf("session: Bind: user has %d bytes, want at most %d", len(user), storage.MaxUser), ErrTooLarge)
	}
	st, err := s.lockForWrite("Bind", "")
	if err != nil {
		return err
	}
	bound := st.userLocked()
	if bound == "" || bound == user {
		st.user = user
		st.mu.Unlock()
		return nil
	}
	st.mu.Unlock()
	if err := s.Destroy(); err != nil {
		return err
	}
	return s.Bind(user)
}

// Remember makes the login that this request has made with Bind last longer. The session then ends Options.RememberFor
// after its creation, whether or not it is used, and its cookie stays when the browser ends. Later logins of the same
// user do not change this. It returns an error if Options.RememberFor is not set, or if the request has not called Bind.
func (s Session) Remember() error {
	st, err := s.lockForWrite("Remember", "")
	if err != nil {
		return err
	}
	defer st.mu.Unlock()
	switch {
	case st.m.opts.RememberFor == 0:
		return errors.New("session: Remember: Options.RememberFor is not set")
	case st.user == "":
		return errors.New("session: Remember: the request has not called Bind")
	}
	st.remember = true
	return nil
}

// User returns the user to whom the session is bound, or will be when it is saved. It returns "" if there is none.
func (s Session) User() (string, error) {
	st, err := s.lock()
	if err != nil {
		return "", err
	}
	defer st.mu.Unlock()
	return st.userLocked(), nil
}

func (s *state) userLocked() string {
	if s.user != "" {
		return s.user
	}
	return s.snap.record.User
}

// RequireUser returns the user to whom the session of ctx's request is bound, or [ErrNotBound], whose response is a
// 401.
func RequireUser(ctx context.Context) (string, error) {
	s, _ := From(ctx) // User returns the error, too
	user, err := s.User()
	if err == nil && user == "" {
		err = ErrNotBound
	}
	return user, err
}

// These are requirements of a route: see [server.Require].
//
// [server.Require]: https://pkg.go.dev/github.com/lazyreq/lazyreq/server#Require
var (
	// Loaded fails if the session cannot be loaded.
	Loaded loaded
	// LoggedIn fails if the session cannot be loaded. It fails with [ErrNotBound], whose response is a 401, if no
	// user is bound to the session.
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
