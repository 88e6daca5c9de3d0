package torture_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	coordstore "github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// windowOutcome is the outcome of an op of a limiter.
type windowOutcome struct {
	allowed bool
	left    int64 // or the count
}

const windowLimit = 20

// windowModel is a fixed window that does not end; its state is the units taken.
var windowModel = model[int64, ratelimit.Op, windowOutcome]{0, func(used int64, op ratelimit.Op, out *windowOutcome) []int64 {
	after, want := used, windowOutcome{allowed: true}
	switch fits := used+op.N <= windowLimit; op.Kind {
	case ratelimit.Take:
		if want.allowed = fits; fits {
			after += op.N
		}
	case ratelimit.Add:
		after += op.N
	case ratelimit.Refund:
		after -= op.Receipt.N
	case ratelimit.Peek:
		want.allowed = fits
	}
	if want.left = max(0, windowLimit-after); op.Kind == ratelimit.Count {
		want.left = after
	}
	return next(used, after, want, out)
}}

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

func windows(t *testing.T, wrap func(ratelimit.Store) ratelimit.Store) func(redis.UniversalClient) func(int) call[ratelimit.Op, windowOutcome] {
	return func(c redis.UniversalClient) func(int) call[ratelimit.Op, windowOutcome] {
		store := wrap(newStore(t, c))
		key := fmt.Sprint("window", keys.Add(1))
		charged := make(chan ratelimit.Receipt, 1000) // and not yet refunded
		return func(int) call[ratelimit.Op, windowOutcome] {
			kinds := []ratelimit.Kind{ratelimit.Take, ratelimit.Take, ratelimit.Take, ratelimit.Peek, ratelimit.Add, ratelimit.Count, ratelimit.Refund}
			op := ratelimit.Op{Rule: ratelimit.FixedWindow(windowLimit, time.Hour), Key: key, Kind: kinds[mathrand.IntN(len(kinds))]}
			if op.Kind == ratelimit.Refund {
				select {
				case op.Receipt = <-charged:
				default:
					op.Kind = ratelimit.Take
				}
			}
			if op.Kind != ratelimit.Refund && op.Kind != ratelimit.Count {
				op.N = 1 + mathrand.Int64N(5)
			}
			return call[ratelimit.Op, windowOutcome]{in: op, run: func() *windowOutcome {
				results, err := store.Do(t.Context(), []ratelimit.Op{op})
				if err != nil {
					return nil
				}
				res := results[0]
				if res.Allowed && res.Receipt.N > 0 && op.Kind != ratelimit.Refund {
					charged <- res.Receipt
				}
				if op.Kind == ratelimit.Count {
					return &windowOutcome{res.Allowed, res.Count}
				}
				return &windowOutcome{res.Allowed, res.Remaining}
			}}
		}
	}
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

// leaseCall is "acquire", "renew", "release" or "holder", by an attempt.
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
	denied bool // or lost, or not held
	number int64
}

var leaseModel = model[leaseState, leaseCall, leaseOutcome]{leaseState{}, func(s leaseState, in leaseCall, out *leaseOutcome) []leaseState {
	mine := s.held && s.id == in.id
	switch {
	case in.what == "acquire" && !s.held && out == nil:
		return []leaseState{s, {true, in.id, s.number + 1}} // or a larger number
	case in.what == "acquire" && !s.held:
		if out.denied || out.number <= s.number {
			return nil
		}
		return []leaseState{{true, in.id, out.number}}
	case in.what == "acquire":
		return next(s, s, leaseOutcome{denied: true}, out)
	case in.what == "holder" && s.held && out != nil && out.number >= s.number && !out.denied:
		s.number = out.number // it is larger if the reply to acquire was lost
		return []leaseState{s}
	case in.what == "holder":
		return next(s, s, leaseOutcome{denied: !s.held}, out)
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
		latest := make(map[int][16]byte) // attempts, by client
		return func(client int) call[leaseCall, leaseOutcome] {
			what := []string{"acquire", "acquire", "renew", "release", "release", "holder"}
			in := leaseCall{what: what[mathrand.IntN(len(what))], id: latest[client]}
			c := call[leaseCall, leaseOutcome]{run: func() *leaseOutcome { return callLease(t.Context(), store, user, in) }}
			if in.what == "acquire" {
				_, _ = rand.Read(in.id[:])
				latest[client] = in.id
				c.undo = &leaseCall{"release", in.id} // the store tries
			}
			c.in = in
			return c
		}
	}
}

func callLease(ctx context.Context, store coord.LeaseStore, user string, in leaseCall) (out *leaseOutcome) {
	r := coord.LeaseRequest{ID: in.id, Name: "a", Lifetime: time.Hour, MaxLifetime: 100 * time.Hour}
	out = new(leaseOutcome)
	var err error
	switch in.what {
	case "acquire":
		out.number, err = store.Acquire(ctx, user, r)
	case "renew":
		_, err = store.Renew(ctx, user, r)
	case "release":
		err = store.Release(ctx, user, r)
	case "holder":
		var held bool
		var h coord.Holder
		h, held, err = store.Holder(ctx, user)
		out.denied, out.number = !held, h.Number
	}
	switch {
	case errors.Is(err, coord.ErrStore):
		return nil
	case err != nil:
		out.denied = true
	}
	return out
}
