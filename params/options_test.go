package params

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"Options.MaxBody":                  {MaxBody: -1},
		"Options.MaxBody ":                 {MaxBody: maxBody + 1},
		"Options.MaxStream":                {MaxStream: -1},
		"Options.MaxFile":                  {MaxFile: -1},
		"Options.MaxFile ":                 {MaxFile: defaults.MaxStream + 1},
		`Options.Routes["PUT /"].MaxFile`:  {MaxStream: 100, Routes: map[string]Options{"PUT /": {MaxFile: 101}}},
		"Options.MaxParts":                 {MaxParts: -1},
		"Options.MaxParams":                {MaxParams: -1},
		"Options.MaxDepth":                 {MaxDepth: -1},
		"Options.MaxDepth ":                {MaxDepth: maxDepth + 1},
		"Options.MaxElements":              {MaxElements: -1},
		"Options.ReadTimeout":              {ReadTimeout: math.MaxInt64},
		`Options.Routes["GET /"].MaxDepth`: {Routes: map[string]Options{"GET /": {MaxDepth: -1}}},
		`Options.Routes["PUT /"].Routes`:   {Routes: map[string]Options{"PUT /": {Routes: map[string]Options{}}}},
	} {
		var wrong *option.Error
		require.ErrorAs(t, o.Err(), &wrong)
		require.Equal(t, "params", wrong.Package)
		require.Equal(t, strings.TrimSpace(field), wrong.Field)
		require.PanicsWithError(t, wrong.Error(), func() { Provide(reqctx.NewRegistry(reqctx.Options{}), o) })
	}
	require.NoError(t, Options{ReadTimeout: -1}.Err())
	require.NoError(t, Options{MaxStream: 100, Routes: map[string]Options{"PUT /": {MaxStream: 10}}}.Err(), "the default MaxFile is more")
}

func TestBudgetOfARoute(t *testing.T) {
	o := Options{MaxParams: 2, MaxDepth: 9, Routes: map[string]Options{"GET /many": {MaxParams: 4}, "GET /few": {MaxParams: 1, MaxDepth: 3}}}
	for pattern, limit := range map[string]int{"GET /many": 4, "GET /few": 1, "GET /rest": 2} {
		for n := 1; n < 6; n++ {
			r := getRequest(strings.Repeat("a&", n))
			r.Pattern = pattern
			_, err := paramsOf(t, r, o).StringOr("x", "")
			require.Equal(t, n > limit, errors.Is(err, ErrTooLarge), pattern)
		}
	}
	b := value(newBudgets(o))
	require.Equal(t, 9, b.routes["GET /many"].MaxDepth)
	require.Equal(t, 3, b.routes["GET /few"].MaxDepth)
	require.Equal(t, defaults.ReadTimeout, b.routes["GET /few"].ReadTimeout)
	require.Equal(t, defaults.MaxBody, b.rest.MaxBody)
	require.Equal(t, time.Duration(-1), value(newBudgets(Options{ReadTimeout: -1})).rest.ReadTimeout)
}

func TestOfTakesTheRoutersRequest(t *testing.T) {
	c := newContext(t, getRequest("id=query"), Options{MaxParams: 1, Routes: map[string]Options{"/{id}": {MaxParams: 2}}})
	p := value(From(c))
	r := c.Request().WithContext(c)
	r.SetPathValue("id", "7")
	r.Pattern = "/{id}"
	id, err := p.Int("id")
	require.Error(t, err, "what the router knows isn't known here: %d", id)
	require.Same(t, p, value(Of(r)))
	require.Equal(t, 7, value(p.Int("id")))
	require.Equal(t, 2, p.budgets.forRequest(c.Request()).MaxParams)

	require.ErrorIs(t, failure(Of(getRequest(""))), reqctx.ErrNoRequest)
}
