package params

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type checked struct {
	Page
	Q     string `query:"q"`
	Lines []line `json:"lines"`
	Extra struct {
		Key string `header:"X-Key"`
	}
	Ship  *Opt[line]      `json:"ship"`
	ByID  map[string]line `json:"by/id"`
	Inner `json:"inner"`
}

type line struct {
	Price int `json:"price"`
	Plain int
}

type Inner struct {
	X int `json:"x"`
}

func TestFaultNamesTheParameter(t *testing.T) {
	for field, want := range map[string]string{
		"Q":                 "query|q|",
		"Page.Size":         "query|size|",
		"Size":              "query|size|",
		"Lines[2].Price":    "json|lines.2.price|#/lines/2/price",
		"Lines[0].Plain":    "json|lines.0.Plain|#/lines/0/Plain",
		"Lines":             "json|lines|#/lines",
		"Extra.Key":         "header|X-Key|",
		"Ship.Price":        "json|ship.price|#/ship/price",
		"ByID[a b/c].Price": "json|by/id.a b/c.price|#/by~1id/a%20b~1c/price",
		"Inner.X":           "json|inner.x|#/inner/x",
		"Nothing":           "|Nothing|",
		"Lines[x].Price":    "|Lines[x].Price|",
		"Q.More":            "|Q.More|",
		"Q[0]":              "|Q[0]|",
	} {
		for _, v := range []any{checked{}, &checked{}} {
			e := Fault(v, field, "is bad")
			require.Equal(t, want, fmt.Sprintf("%s|%s|%s", e.Source, e.Name, e.Pointer()), field)
			require.ErrorIs(t, e, ErrInvalid)
			status, _ := e.Problem()
			require.Equal(t, 422, status)
		}
	}
	require.Equal(t, "x", Fault(nil, "x", "is bad").Name)

	type plain struct{ Ship struct{ City string } }
	require.Equal(t, "#/Ship/City", Fault(plain{}, "Ship.City", "is bad").Pointer(), "of a type for JSON alone")
}

func TestValidation(t *testing.T) {
	type numbers struct {
		A int `query:"a"`
		B int `query:"b"`
	}
	own := errors.New("database is down")
	positive := func(_ context.Context, v any) error {
		n := v.(*numbers)
		switch {
		case n.A == 13:
			return own
		case n.A < 0 && n.B < 0:
			return errors.Join(Fault(n, "A", "must be positive"), Fault(n, "B", "must be positive"))
		case n.A < 0:
			return fmt.Errorf("check: %w", Fault(n, "A", "must be positive"))
		}
		return nil
	}
	bind := func(query string, more ...func(*numbers) error) (numbers, error) {
		return Bind(newContext(t, getRequest(query), Options{Validate: positive}), more...)
	}
	require.Equal(t, numbers{1, 2}, value(bind("a=1&b=2")))

	got, err := bind("a=-1&b=-2")
	require.Equal(t, numbers{}, got)
	list := errorsOf(t, err)
	require.Len(t, list, 2)
	status, _ := list.Problem()
	require.Equal(t, 422, status)

	requireReason(t, failure(bind("a=-1")), ErrInvalid, `query parameter "a" must be positive`)
	_, err = bind("a=13")
	require.Equal(t, own, err, "the program's own error comes back as it is")
	require.ErrorIs(t, failure(bind("a=x")), ErrMalformed, "what can't be bound isn't validated")

	calls := 0
	check := func(n *numbers) error { calls++; n.B = 9; return nil }
	require.Equal(t, 9, value(bind("a=1", check)).B, "a function may also tidy up")
	require.Error(t, failure(bind("a=-1", check)))
	require.Equal(t, 1, calls)
	_, err = bind("a=1", func(*numbers) error { return errors.Join(Fault(numbers{}, "A", "is odd"), own) })
	require.Equal(t, own, err, "the program's error hides the client's mistakes")
	require.EqualError(t, failure(bind("a=1", func(*numbers) error { return fmt.Errorf("check: %w", own) })), "check: database is down")

	type doc struct{ A int }
	refuse := Options{Validate: func(_ context.Context, v any) error { return Fault(v, "A", "is odd") }}
	v, err := JSON[doc](newContext(t, postJSON(`{"A":1}`), refuse))
	require.Equal(t, doc{}, v)
	require.Equal(t, "#/A", requireReason(t, err, ErrInvalid, "is odd").Pointer())
}

// A validation may return a nil *Error as its error, or join it with other errors. It counts as no error.
func TestTypedNilOfACheck(t *testing.T) {
	type numbers struct {
		A int `query:"a"`
	}
	var none *Error
	bad := Fault(numbers{}, "A", "is odd")
	for _, tt := range []struct{ result, want error }{
		{none, nil},
		{Errors(nil), nil},
		{Errors{nil, none}, nil},
		{errors.Join(none, nil), nil},
		{errors.Join(none, bad), bad},
		{Errors{none, bad}, bad},
	} {
		for _, o := range []Options{{}, {Validate: func(context.Context, any) error { return tt.result }}} {
			got, err := Bind(newContext(t, getRequest("a=1"), o), func(*numbers) error { return tt.result })
			require.Equal(t, tt.want, err)
			require.Equal(t, tt.want == nil, got.A == 1)
		}
	}
	wrapped := fmt.Errorf("check: %w", error(none))
	_, err := Bind(newContext(t, getRequest("a=1"), Options{}), func(*numbers) error { return wrapped })
	require.Equal(t, wrapped, err, "the text is an error of the program")
}
