package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Union asks one store about several rules at once, such as 10 in a second and 1000 in a
// day: a key is charged by all of them or by none. It is immutable and safe for
// concurrent use. Its methods cost one call of the store.
type Union struct {
	store Store
	rules []Rule
}

// NewUnion returns a union of rules, at least one. They have a limit each, and share no
// counter with one another.
func NewUnion(store Store, rules ...Rule) (*Union, error) {
	switch {
	case store == nil:
		return nil, errors.New("ratelimit: NewUnion: store is nil")
	case len(rules) == 0:
		return nil, errors.New("ratelimit: NewUnion: no rules")
	}
	seen := map[uint64]bool{}
	for i, r := range rules {
		switch {
		case r == Rule{}:
			return nil, fmt.Errorf("ratelimit: NewUnion: rules[%d] is the zero Rule", i)
		case r.layout.Limit == 0:
			return nil, fmt.Errorf("ratelimit: NewUnion: rules[%d] has no limit: %v", i, r)
		case seen[r.layout.ID]:
			return nil, fmt.Errorf("ratelimit: NewUnion: rules[%d] shares its counter with another: %v", i, r)
		}
		seen[r.layout.ID] = true
	}
	return &Union{store: store, rules: append([]Rule(nil), rules...)}, nil
}

// Verdict is what the rules of a [Union] say together. Its Result is that of the rule
// that one waits for longest, or has the least left of, but Remaining is what all of
// them leave, RetryAfter and ResetAfter are the longest, and there is no receipt. Rules that
// are only tried out ([FromShadow]) have a say in it only if all are.
type Verdict struct {
	Result
	Each []Result // one for each rule, in the union's order; not to be changed
}

// Take charges n units to key by every rule if all allow it, otherwise by none. Those
// that denied are Violated in Each.
func (u *Union) Take(ctx context.Context, key string, n int64) (Verdict, error) {
	return u.ask(ctx, Take, key, n)
}

// Peek says what Take would, and charges nothing.
func (u *Union) Peek(ctx context.Context, key string, n int64) (Verdict, error) {
	return u.ask(ctx, Peek, key, n)
}

// Denied returns the rules that denied what v answers.
func (u *Union) Denied(v Verdict) []Rule {
	var denied []Rule
	for i, r := range v.Each {
		if r.Violated && !fromShadow(r) {
			denied = append(denied, u.rules[i])
		}
	}
	return denied
}

// Refund gives back what a Take of key charged, by every rule that still can, and tells
// whether all could.
func (u *Union) Refund(ctx context.Context, key string, v Verdict) (bool, error) {
	if len(v.Each) != len(u.rules) {
		return false, fmt.Errorf("%w: refund of a verdict of %d rules, want %d", ErrOp, len(v.Each), len(u.rules))
	}
	ops := make([]Op, len(u.rules))
	for i, r := range u.rules {
		ops[i] = Op{Rule: r, Key: key, Kind: Refund, Receipt: v.Each[i].Receipt}
	}
	back, err := u.store.Do(ctx, ops)
	if err != nil {
		return false, err
	}
	return together(back).Allowed, nil
}

// Reset forgets what the rules count of key.
func (u *Union) Reset(ctx context.Context, key string) error {
	ops := make([]Op, len(u.rules))
	for i, r := range u.rules {
		ops[i] = Op{Rule: r, Key: key, Kind: Reset}
	}
	_, err := u.store.Do(ctx, ops)
	return err
}

func (u *Union) ask(ctx context.Context, kind Kind, key string, n int64) (Verdict, error) {
	ops := make([]Op, len(u.rules))
	for i, r := range u.rules {
		ops[i] = Op{Rule: r, Key: key, N: n, Kind: kind}
	}
	each, err := u.store.Do(ctx, ops)
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Result: together(each), Each: each}, nil
}

// together makes one result of several, as Verdict says.
func together(each []Result) Result {
	first := max(0, slices.IndexFunc(each, func(r Result) bool { return !fromShadow(r) }))
	sum := each[first]
	for _, r := range each[first+1:] {
		if !fromShadow(r) || fromShadow(sum) {
			sum = mergeResults(sum, r)
		}
	}
	sum.Receipt = Receipt{}
	return sum
}
