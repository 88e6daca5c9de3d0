package session_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

type cart struct {
	Items map[string]int `json:"items"`
	Total int64          `json:"total"`
}

var cartField = session.NewField[cart]("cart")

func TestFieldKeepsItsType(t *testing.T) {
	s := newSite(t, session.Options{})
	want := cart{Items: map[string]int{"tea": 2}, Total: 1<<53 + 1}
	cookie := cookieOf(t, s.do(t, "", func(ctx context.Context, _ session.Session) {
		require.Equal(t, cart{}, must(cartField.Get(ctx)))

		mine := cart{Items: map[string]int{"tea": 2}, Total: want.Total}
		require.NoError(t, cartField.Set(ctx, mine))
		mine.Items["tea"] = 99 // must not change the stored value
		got := must(cartField.Get(ctx))
		require.Equal(t, want, got)
		got.Items["tea"] = 77 // must not change the stored value either
		require.Equal(t, want, must(cartField.Get(ctx)))
	}))
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.Equal(t, want, must(cartField.Get(context.WithValue(ctx, ctxKey{}, 1))))
		require.Equal(t, map[string]any{"items": map[string]any{"tea": 2.0}, "total": float64(1 << 53)}, must(v.Get("cart")))
		require.NoError(t, cartField.Delete(ctx))
		require.Equal(t, cart{}, must(cartField.Get(ctx)))
	})
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.Nil(t, must(v.Get("cart")))
	})
}

type ctxKey struct{}

func TestUndecodableFieldIsLostAloneAndLogged(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.NoError(t, v.Set("cart", map[string]any{"items": map[string]int{"tea": 1}, "total": "hunter2"}))
	})
	h := s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		require.Equal(t, cart{}, must(cartField.Get(ctx)), "not half a value")
		require.Equal(t, "ada", must(userField.Get(ctx)), "the login stays")
	})
	require.Empty(t, h["Set-Cookie"])
	require.Contains(t, s.log.String(), `"field":"cart"`)
	require.NotContains(t, s.log.String(), "hunter2")
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		got := must(v.Get("cart"))
		require.NotNil(t, got, "the stored value stays")
	})
}

// gobCodec is a Codec that uses encoding/gob.
type gobCodec struct{}

func (gobCodec) Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec) Decode(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

func TestFieldWithAnotherCodec(t *testing.T) {
	s := newSite(t, session.Options{})
	field := session.NewField[cart]("cart").WithCodec(gobCodec{})
	want := cart{Items: map[string]int{"tea": 2}, Total: 5}
	cookie := cookieOf(t, s.do(t, "", func(ctx context.Context, _ session.Session) {
		require.NoError(t, field.Set(ctx, want))
	}))
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.Equal(t, want, must(field.Get(ctx)))
		untyped, err := v.Get("cart")
		require.NoError(t, err, "the dynamic Get knows JSON only")
		require.Nil(t, untyped)
	})
}

func TestFieldOnTheWrongContext(t *testing.T) {
	_, err := userField.Get(t.Context())
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
	outside, err := session.From(t.Context())
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
	for name, err := range callWriters(t.Context(), outside) {
		require.ErrorIs(t, err, reqctx.ErrNoRequest, name)
	}
	require.Panics(t, func() { session.NewField[int]("") })

	s := newSite(t, session.Options{})
	c := s.begin(t, s.login(t, "ada"))
	var zero session.Field[int]
	_, err = zero.Get(c)
	_, _, err2 := session.Flash[int]{}.Take(c)
	for _, err := range []error{err, err2, zero.Set(c, 1), zero.Delete(c), zero.Update(c, plus(1))} {
		require.ErrorContains(t, err, "NewField")
	}
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
}
