package params

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTextConversions(t *testing.T) {
	p := paramsOf(t, getRequest("s=go&e=&i=-42&l=9223372036854775807&b=on&o=0&t=2026-01-02T03:04:05.5%2B02:00&n=a&n=b&n="), Options{})

	s, err := p.String("s")
	require.NoError(t, err)
	require.Equal(t, "go", s)
	e, err := p.String("e")
	require.NoError(t, err)
	require.Empty(t, e)
	i, err := p.Int("i")
	require.NoError(t, err)
	require.Equal(t, -42, i)
	l, err := p.Int64("l")
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), l)
	b, err := p.Bool("b")
	require.NoError(t, err)
	require.True(t, b)
	o, err := p.BoolOr("o", true)
	require.NoError(t, err)
	require.False(t, o)
	at, err := p.Time("t")
	require.NoError(t, err)
	require.True(t, at.Equal(time.Date(2026, 1, 2, 1, 4, 5, 500e6, time.UTC)))
	n, err := p.Strings("n")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", ""}, n)
	one, err := p.Strings("s")
	require.NoError(t, err)
	require.Equal(t, []string{"go"}, one)
	none, err := p.Strings("none")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestMalformedText(t *testing.T) {
	p := paramsOf(t, getRequest("i=4x&f=1.5&e=&big=9223372036854775808&b=yes&t=2026-01-02T3:04:05Z&d=2026-01-02&c=2026-01-02T03:04:05,5Z"), Options{})
	for name, text := range map[string]string{
		"i": "must be a whole number", "f": "must be a whole number", "e": "must be a whole number",
		"big": "is out of range",
	} {
		_, err := p.Int(name)
		e := requireReason(t, err, ErrMalformed, `query parameter "`+name+`" `+text)
		require.Equal(t, SourceQuery, e.Source)
		got, err := p.IntOr(name, 7)
		require.ErrorIs(t, err, ErrMalformed, "a default stands in for nothing but a missing value")
		require.Zero(t, got)
		_, err = p.Int64(name)
		requireReason(t, err, ErrMalformed, text)
		_, err = p.Int64Or(name, 7)
		requireReason(t, err, ErrMalformed, text)
	}
	for _, name := range []string{"b", "e"} {
		_, err := p.BoolOr(name, true)
		requireReason(t, err, ErrMalformed, "must be true or false")
	}
	for _, name := range []string{"t", "d", "c", "e"} {
		_, err := p.TimeOr(name, time.Now())
		requireReason(t, err, ErrMalformed, "must be an RFC 3339 time")
	}
}

func TestDefaultsForMissing(t *testing.T) {
	p := paramsOf(t, getRequest(""), Options{})
	s, err := p.StringOr("s", "def")
	require.NoError(t, err)
	require.Equal(t, "def", s)
	i, err := p.IntOr("i", 7)
	require.NoError(t, err)
	require.Equal(t, 7, i)
	l, err := p.Int64Or("l", math.MinInt64)
	require.NoError(t, err)
	require.Equal(t, int64(math.MinInt64), l)
	b, err := p.BoolOr("b", true)
	require.NoError(t, err)
	require.True(t, b)
	now := time.Unix(1, 0)
	at, err := p.TimeOr("t", now)
	require.NoError(t, err)
	require.Equal(t, now, at)

	for _, get := range []func(string) error{
		func(n string) error { _, err := p.String(n); return err },
		func(n string) error { _, err := p.Int(n); return err },
		func(n string) error { _, err := p.Int64(n); return err },
		func(n string) error { _, err := p.Bool(n); return err },
		func(n string) error { _, err := p.Time(n); return err },
	} {
		e := requireReason(t, get("x"), ErrMissing, `parameter "x" is missing`)
		require.Equal(t, "x", e.Name)
		require.NotErrorIs(t, e, ErrMalformed)
	}
}

func TestRepeatedNameHasNoSingleValue(t *testing.T) {
	for name, p := range map[string]*Params{
		"query": paramsOf(t, getRequest("a=1&a=2"), Options{}),
		"form":  paramsOf(t, postForm("/", "a=1&a=2"), Options{}),
	} {
		_, err := p.StringOr("a", "def")
		requireReason(t, err, ErrMalformed, name+` parameter "a" is given 2 times`)
		all, err := p.Strings("a")
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2"}, all)
	}
}

func TestJSONMembersHaveTheirTypes(t *testing.T) {
	p := paramsOf(t, postJSON(`{"s":"a\u00e9\n😀\uD83D\uDE00","i":9007199254740993,"b":false,
		"t":"2026-01-02T03:04:05Z","n":["a","\u0062"],"none":[],"\u0065scaped":1}`), Options{})
	s, err := p.String("s")
	require.NoError(t, err)
	require.Equal(t, "aé\n😀😀", s)
	i, err := p.Int("i")
	require.NoError(t, err)
	require.Equal(t, 9007199254740993, i, "no detour through a float")
	l, err := p.Int64("i")
	require.NoError(t, err)
	require.Equal(t, int64(9007199254740993), l)
	b, err := p.BoolOr("b", true)
	require.NoError(t, err)
	require.False(t, b)
	at, err := p.Time("t")
	require.NoError(t, err)
	require.Equal(t, 2026, at.Year())
	n, err := p.Strings("n")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, n)
	none, err := p.Strings("none")
	require.NoError(t, err)
	require.Equal(t, []string{}, none)
	escaped, err := p.JSON().Int("escaped")
	require.NoError(t, err)
	require.Equal(t, 1, escaped)
}

func TestJSONMembersAreNotConverted(t *testing.T) {
	p := paramsOf(t, postJSON(`{"s":"5","i":5,"f":5.0,"e":5e2,"big":9223372036854775808,"null":null,
		"bool":true,"o":{},"mixed":["a",1],"nested":[["a"]],"nulls":["a",null]}`), Options{})
	fails := func(_ any, err error) func(string) {
		return func(text string) { t.Helper(); requireReason(t, err, ErrMalformed, text) }
	}
	fails(p.String("i"))(`json parameter "i" must be a string, not a number`)
	fails(p.String("null"))("must be a string, not null")
	fails(p.StringOr("null", "def"))("must be a string, not null")
	fails(p.String("o"))("must be a string, not an object")
	fails(p.Int("s"))("must be a whole number, not a string")
	fails(p.Int("f"))("must be a whole number")
	fails(p.Int("e"))("must be a whole number")
	fails(p.Int("big"))("is out of range")
	fails(p.Int64("big"))("is out of range")
	fails(p.Int64("s"))("must be a whole number, not a string")
	fails(p.Int64Or("null", 1))("must be a whole number, not null")
	fails(p.Bool("s"))("must be true or false, not a string")
	fails(p.Bool("i"))("must be true or false, not a number")
	fails(p.Time("i"))("must be an RFC 3339 time, such as 2006-01-02T15:04:05Z, not a number")
	fails(p.Time("s"))("must be an RFC 3339 time")
	fails(p.Strings("s"))("must be an array, not a string")
	fails(p.Strings("mixed"))(`json parameter "mixed.1" must be a string, not a number`)
	fails(p.Strings("nested"))(`json parameter "nested.0" must be a string, not an array`)
	fails(p.Strings("nulls"))(`json parameter "nulls.1" must be a string, not null`)
}

func TestJSONStringsAreBounded(t *testing.T) {
	doc := `{"n":["a"` + strings.Repeat(`,"a"`, 10) + `]}`
	_, err := paramsOf(t, postJSON(doc), Options{MaxElements: 11}).Strings("n")
	requireReason(t, err, ErrTooLarge, "has more than 11 elements")
	all, err := paramsOf(t, postJSON(doc), Options{MaxElements: 12}).Strings("n")
	require.NoError(t, err)
	require.Len(t, all, 11)
}

func TestMembersOfWhatIsNoObject(t *testing.T) {
	for doc, is := range map[string]string{`[1]`: "an array", `"q"`: "a string", `null`: "null", `1`: "a number"} {
		_, err := paramsOf(t, postJSON(doc), Options{}).String("q")
		requireReason(t, err, ErrMalformed, "the request body must be an object, not "+is)
	}
}

func TestEmptyBodyHasNoParameters(t *testing.T) {
	for _, r := range []string{formType, jsonType} {
		req := post("/?q=query", r, "")
		q, err := paramsOf(t, req, Options{}).String("q")
		require.NoError(t, err)
		require.Equal(t, "query", q)
	}
	req := post("/?q=query", "image/png", "")
	q, err := paramsOf(t, req, Options{}).String("q")
	require.NoError(t, err)
	require.Equal(t, "query", q)
}
