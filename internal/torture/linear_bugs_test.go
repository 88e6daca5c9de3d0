package torture_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestHistoriesAreLinearizable checks what concurrent callers of one Redis observe, and that a history
// with a bug of the store is found.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(t *testing.T, histories int, bug bool) error{
		"limiter": func(t *testing.T, histories int, bug bool) error {
			return checkLinear(t, histories, windowModel, windows(t, func(s ratelimit.Store) ratelimit.Store {
				if bug {
					return &buggy{s, peekAndAdd}
				}
				return s
			}))
		},
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

// peekAndAdd takes in two steps.
func peekAndAdd(ctx context.Context, inner ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	op := ops[0]
	if op.Kind != ratelimit.Take {
		return inner.Do(ctx, ops)
	}
	op.Kind = ratelimit.Peek
	results, err := inner.Do(ctx, []ratelimit.Op{op})
	if err != nil || !results[0].Allowed {
		return results, err
	}
	op.Kind = ratelimit.Add
	return inner.Do(ctx, []ratelimit.Op{op})
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
