package torture_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// buggySessions is a store whose methods may have bugs.
type buggySessions struct {
	session.Store
	load    func(context.Context, session.Store, storage.Locator, storage.Digest, storage.Limits) (storage.Record, error)
	commit  func(context.Context, session.Store, storage.Delta) error
	destroy func(context.Context, session.Store, storage.Locator, storage.Digest) error
}

func (b *buggySessions) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	if b.load != nil {
		return b.load(ctx, b.Store, l, d, lim)
	}
	return b.Store.Load(ctx, l, d, lim)
}

func (b *buggySessions) Commit(ctx context.Context, d storage.Delta) error {
	if b.commit != nil {
		return b.commit(ctx, b.Store, d)
	}
	return b.Store.Commit(ctx, d)
}

func (b *buggySessions) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	if b.destroy != nil {
		return b.destroy(ctx, b.Store, l, d)
	}
	return b.Store.Destroy(ctx, l, d)
}

// TestSessionBugsAreFound checks that each check of visits finds a bug of a store.
func TestSessionBugsAreFound(t *testing.T) {
	t.Parallel()
	// sometimes returns a function that returns true in every twentieth call.
	sometimes := func() func() bool {
		var n atomic.Int64
		return func() bool { return n.Add(1)%20 == 0 }
	}
	drops, halves, twice, swaps := sometimes(), sometimes(), sometimes(), sometimes()
	var another atomic.Pointer[storage.Record]
	for name, tt := range map[string]struct {
		bug  buggySessions
		want string
	}{
		"none": {buggySessions{}, ""},
		"drops a write": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if len(d.Changes) > 0 && !d.Create && drops() {
				return nil
			}
			return s.Commit(ctx, d)
		}}, "a lost write"},
		"drops a session": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if d.Create {
				return nil
			}
			return s.Commit(ctx, d)
		}}, "nothing has ended it"},
		"commits half": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if !d.Create && halves() {
				d.Changes = maps.Clone(d.Changes)
				delete(d.Changes, "right")
			}
			return s.Commit(ctx, d)
		}}, "half a commit"},
		"commits twice": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if err := s.Commit(ctx, d); err != nil || d.Create || !twice() {
				return err
			}
			return s.Commit(ctx, d)
		}}, "made twice"},
		"revives a session": {buggySessions{destroy: func(ctx context.Context, s session.Store, l storage.Locator, d storage.Digest) error {
			limits := storage.Limits{Idle: time.Hour, Absolute: time.Hour}
			rec, err := s.Load(ctx, l, d, limits)
			if err == nil {
				err = s.Destroy(ctx, l, d)
			}
			if err != nil {
				return err
			}
			back := storage.Delta{Locator: l, Digest: d, Create: true, Bind: rec.User, Limits: limits, Changes: map[string]storage.Change{}}
			for name, value := range rec.Fields {
				back.Changes[name] = storage.Change{Op: storage.OpSet, Value: value}
			}
			return s.Commit(ctx, back)
		}}, "it exists after POST /destroy"},
		"extends a grace": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			d.Grace *= 10
			return s.Commit(ctx, d)
		}}, "past its grace"},
		"has no grace": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			d.Grace = 0
			return s.Commit(ctx, d)
		}}, "nothing has ended it"},
		"forgets a renewal": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if !d.Create {
				d.Rotate, d.Grace = storage.Digest{}, 0
			}
			return s.Commit(ctx, d)
		}}, "the cookie of before a renewal|nothing has ended it"},
		"drops fields on renewal": {buggySessions{commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			if d.Grace > 0 {
				d.Changes = map[string]storage.Change{"left": {Op: storage.OpDelete}, "right": {Op: storage.OpDelete}}
			}
			return s.Commit(ctx, d)
		}}, "a lost write"},
		"lets an old cookie write": {buggySessions{load: func(ctx context.Context, s session.Store, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
			rec, err := s.Load(ctx, l, d, lim)
			rec.Old = false
			return rec, err
		}, commit: func(ctx context.Context, s session.Store, d storage.Delta) error {
			err := s.Commit(ctx, d)
			if errors.Is(err, session.ErrGone) {
				return nil
			}
			return err
		}}, "a change with the cookie of before"},
		"swaps sessions": {buggySessions{load: func(ctx context.Context, s session.Store, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
			rec, err := s.Load(ctx, l, d, lim)
			if err == nil && swaps() {
				if other := another.Swap(&rec); other != nil {
					return *other, nil
				}
			}
			return rec, err
		}}, "another user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, err := memstore.New(memstore.Options{})
			require.NoError(t, err)
			tt.bug.Store = inner
			v := newVisits([]http.Handler{newApp(t, &tt.bug)}, 10)
			requests := 5000
			if tt.want == "" {
				requests = 2000
			}
			for err == nil && len(v.requests) < requests {
				stop := v.call(t.Context())
				<-time.After(300 * time.Millisecond)
				stop()
				err = checkVisits(v.requests, nil)
			}
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Regexp(t, tt.want, err.Error())
		})
	}
}
