package torture_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	coordstore "github.com/lazyreq/lazyreq/coord/redisstore"
)

// next returns the states after an op that has only one outcome.
func next[S any, Out comparable](before, after S, want Out, out *Out) []S {
	switch {
	case out == nil:
		return []S{before, after}
	case *out == want:
		return []S{after}
	}
	return nil
}

// tokenCall is a call of a token: "issue", "use", "revoke" or "inspect", by a client.
type tokenCall struct{ what, by string }

// tokenState is a token, and what Inspect reports.
type tokenState struct {
	state coord.State // 0 if it is unknown
	by    string
}

type tokenOutcome struct {
	err   error
	token tokenState
}

var tokenModel = model[tokenState, tokenCall, tokenOutcome]{tokenState{}, func(s tokenState, in tokenCall, out *tokenOutcome) []tokenState {
	after, want := s, tokenOutcome{}
	switch {
	case in.what == "issue" && s.state == 0:
		after.state = coord.Usable
	case in.what == "issue":
		want.err = coord.ErrExists
	case s.state == 0:
		want.err = coord.ErrUnknown
	case in.what == "inspect":
		want.token = s
	case in.what == "use" && s.state == coord.Usable:
		after = tokenState{coord.Used, in.by}
	case in.what == "revoke" && s.state == coord.Usable:
		after.state = coord.Revoked
	case in.what == "revoke" && s.state == coord.Revoked:
	default:
		want.err = s.state.Err()
	}
	return next(s, after, want, out)
}}

func tokens(t *testing.T, wrap func(coord.TokenStore) coord.TokenStore) func(redis.UniversalClient) func(int) call[tokenCall, tokenOutcome] {
	return func(c redis.UniversalClient) func(int) call[tokenCall, tokenOutcome] {
		store, err := coordstore.New(c, coordstore.Options{})
		require.NoError(t, err)
		tokens, err := coord.NewTokens(wrap(store))
		require.NoError(t, err)
		id := coord.NewID()
		return func(client int) call[tokenCall, tokenOutcome] {
			what := []string{"issue", "use", "use", "inspect", "inspect", "inspect", "revoke"}
			in := tokenCall{what[mathrand.IntN(len(what))], fmt.Sprint(client, mathrand.Int())}
			return call[tokenCall, tokenOutcome]{in: in, run: func() *tokenOutcome {
				var out tokenOutcome
				switch in.what {
				case "issue":
					out.err = tokens.Issue(t.Context(), id, nil, time.Hour)
				case "use":
					_, out.err = tokens.Use(t.Context(), id, in.by)
				case "revoke":
					out.err = tokens.Revoke(t.Context(), id)
				case "inspect":
					var token coord.Token
					token, out.err = tokens.Inspect(t.Context(), id)
					out.token = tokenState{token.State, token.UsedBy}
				}
				if errors.Is(out.err, coord.ErrStore) {
					return nil
				}
				return &out
			}}
		}
	}
}

// leaseCall is a call of a lease by an attempt: "acquire", "renew" or "release".
type leaseCall struct {
	what string
	id   [16]byte
}

// leaseState is a lease's holder, and its last number.
type leaseState struct {
	held   bool
	id     [16]byte
	number int64
}

type leaseOutcome struct {
	denied bool // the lease is held by another client, or lost
	number int64
}

var leaseModel = model[leaseState, leaseCall, leaseOutcome]{leaseState{}, func(s leaseState, in leaseCall, out *leaseOutcome) []leaseState {
	mine := s.held && s.id == in.id
	switch {
	case in.what == "acquire" && !s.held && out == nil:
		return []leaseState{s, {true, in.id, s.number + 1}} // the number may also be larger
	case in.what == "acquire" && !s.held:
		if out.denied || out.number <= s.number {
			return nil
		}
		return []leaseState{{true, in.id, out.number}}
	case in.what == "acquire":
		return next(s, s, leaseOutcome{denied: true}, out)
	case in.what == "release" && mine:
		return next(s, leaseState{number: s.number}, leaseOutcome{}, out)
	}
	return next(s, s, leaseOutcome{denied: !mine}, out)
}}

func leases(t *testing.T, wrap func(coord.LeaseStore) coord.LeaseStore) func(redis.UniversalClient) func(int) call[leaseCall, leaseOutcome] {
	return func(c redis.UniversalClient) func(int) call[leaseCall, leaseOutcome] {
		inner, err := coordstore.New(c, coordstore.Options{})
		require.NoError(t, err)
		store := wrap(inner)
		user := coord.NewID()
		latest := make(map[int][16]byte) // the latest attempt of each client
		return func(client int) call[leaseCall, leaseOutcome] {
			what := []string{"acquire", "acquire", "renew", "release", "release"}
			in := leaseCall{what: what[mathrand.IntN(len(what))], id: latest[client]}
			c := call[leaseCall, leaseOutcome]{run: func() *leaseOutcome { return callLease(t.Context(), store, user, in) }}
			if in.what == "acquire" {
				_, _ = rand.Read(in.id[:])
				latest[client] = in.id
				c.undo = &leaseCall{"release", in.id} // the store tries to release the lease after a failure
			}
			c.in = in
			return c
		}
	}
}

func callLease(ctx context.Context, store coord.LeaseStore, user string, in leaseCall) (out *leaseOutcome) {
	r := coord.LeaseRequest{ID: in.id, Name: "a", Lifetime: time.Hour}
	out = new(leaseOutcome)
	var err error
	switch in.what {
	case "acquire":
		out.number, err = store.Acquire(ctx, user, r)
	case "renew":
		err = store.Renew(ctx, user, r)
	case "release":
		err = store.Release(ctx, user, r)
	}
	switch {
	case errors.Is(err, coord.ErrStore):
		return nil
	case err != nil:
		out.denied = true
	}
	return out
}

// TestHistoriesAreLinearizable checks that the histories of concurrent callers of the same Redis are linearizable,
// and that the check finds a history with a bug in the store.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(t *testing.T, histories int, bug bool) error{
		"token": func(t *testing.T, histories int, bug bool) error {
			return checkLinear(t, histories, tokenModel, tokens(t, func(s coord.TokenStore) coord.TokenStore {
				if bug {
					return &reusable{TokenStore: s}
				}
				return s
			}))
		},
		"lease": func(t *testing.T, histories int, bug bool) error {
			return checkLinear(t, histories, leaseModel, leases(t, func(s coord.LeaseStore) coord.LeaseStore {
				if bug {
					return &unfenced{LeaseStore: s}
				}
				return s
			}))
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); require.NoError(t, check(t, 5, false)) })
		t.Run(name+" with a bug", func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, check(t, 100, true), "is not linearizable")
		})
	}
}

// reusable lets a token be used twice at times.
type reusable struct {
	coord.TokenStore
	n atomic.Int64
}

func (s *reusable) Use(ctx context.Context, key coord.TokenKey, by string) (coord.Token, error) {
	token, err := s.TokenStore.Use(ctx, key, by)
	if errors.Is(err, coord.ErrUsed) && s.n.Add(1)%4 == 0 {
		err = nil
	}
	return token, err
}

// unfenced grants each second lease with the number of the one before.
type unfenced struct {
	coord.LeaseStore
	granted, last atomic.Int64
}

func (s *unfenced) Acquire(ctx context.Context, user string, r coord.LeaseRequest) (int64, error) {
	number, err := s.LeaseStore.Acquire(ctx, user, r)
	if err == nil && s.granted.Add(1)%2 == 0 {
		return s.last.Load(), nil
	}
	s.last.Store(number)
	return number, err
}
