package params

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextConversions(t *testing.T) {
	p := paramsOf(t, getRequest("s=go&e=&i=-42&l=9223372036854775807&b=on&o=0&n=a&n=b&n="), Options{})

	require.Equal(t, "go", value(p.String("s")))
	require.Empty(t, value(p.String("e")))
	require.Equal(t, -42, value(p.Int("i")))
	require.Equal(t, int64(math.MaxInt64), value(p.Int64("l")))
	require.True(t, value(p.Bool("b")))
	require.False(t, value(p.BoolOr("o", true)))
	require.Equal(t, []string{"a", "b", ""}, value(p.Strings("n")))
	require.Equal(t, []string{"go"}, value(p.Strings("s")))
	require.Nil(t, value(p.Strings("none")))
}

func TestMalformedText(t *testing.T) {
	p := paramsOf(t, getRequest("i=4x&f=1.5&e=&big=9223372036854775808&b=yes"), Options{})
	for name, text := range map[string]string{
		"i": "must be a whole number", "f": "must be a whole number", "e": "must be a whole number",
		"big": "is out of range",
	} {
		require.Equal(t, SourceQuery, requireReason(t, failure(p.Int(name)), ErrMalformed, `query parameter "`+name+`" `+text).Source)
		got, err := p.IntOr(name, 7)
		require.ErrorIs(t, err, ErrMalformed, "a default stands in for nothing but a missing value")
		require.Zero(t, got)
		requireReason(t, failure(p.Int64(name)), ErrMalformed, text)
		requireReason(t, failure(p.Int64Or(name, 7)), ErrMalformed, text)
	}
	for _, name := range []string{"b", "e"} {
		requireReason(t, failure(p.BoolOr(name, true)), ErrMalformed, "must be true or false")
	}
}

func TestDefaultsForMissing(t *testing.T) {
	p := paramsOf(t, getRequest(""), Options{})
	require.Equal(t, "def", value(p.StringOr("s", "def")))
	require.Equal(t, 7, value(p.IntOr("i", 7)))
	require.Equal(t, int64(math.MinInt64), value(p.Int64Or("l", math.MinInt64)))
	require.True(t, value(p.BoolOr("b", true)))
	require.Equal(t, "x", requireReason(t, failure(p.Float("x")), ErrMissing, `parameter "x" is missing`).Name)
}

func TestRepeatedNameHasNoSingleValue(t *testing.T) {
	for name, p := range map[string]*Params{
		"query": paramsOf(t, getRequest("a=1&a=2"), Options{}),
		"form":  paramsOf(t, postForm("/", "a=1&a=2"), Options{}),
	} {
		requireReason(t, failure(p.StringOr("a", "def")), ErrMalformed, name+` parameter "a" is given 2 times`)
		require.Equal(t, []string{"1", "2"}, value(p.Strings("a")))
	}
}

func TestJSONMembersHaveTheirTypes(t *testing.T) {
	p := paramsOf(t, postJSON(`{"s":"a\u00e9\n😀\uD83D\uDE00","i":9007199254740993,"b":false,"n":["a","\u0062"],"none":[],"\u0065scaped":1}`), Options{})
	require.Equal(t, "aé\n😀😀", value(p.String("s")))
	require.Equal(t, 9007199254740993, value(p.Int("i")), "no detour through a float")
	require.Equal(t, int64(9007199254740993), value(p.Int64("i")))
	require.False(t, value(p.BoolOr("b", true)))
	require.Equal(t, []string{"a", "b"}, value(p.Strings("n")))
	require.Equal(t, []string{}, value(p.Strings("none")))
	require.Equal(t, 1, value(p.JSON().Int("escaped")))
}

func TestJSONMembersAreNotConverted(t *testing.T) {
	p := paramsOf(t, postJSON(`{"s":"5","i":5,"f":5.0,"e":5e2,"big":9223372036854775808,"null":null,
		"bool":true,"o":{},"mixed":["a",1],"nested":[["a"]],"nulls":["a",null]}`), Options{})
	fails := func(_ any, err error) func(string) {
		return func(text string) { t.Helper(); requireReason(t, err, ErrMalformed, text) }
	}
	fails(p.String("i"))(`json parameter "i" must be a string, not a number`)
	fails(p.String("null"))("must be a string, not null")
	fails(p.String("o"))("must be a string, not an object")
	fails(p.Int("s"))("must be a whole number, not a string")
	fails(p.Int("f"))("must be a whole number")
	fails(p.Int("big"))("is out of range")
	fails(p.Int64("big"))("is out of range")
	fails(p.Int64Or("null", 1))("must be a whole number, not null")
	fails(p.Bool("s"))("must be true or false, not a string")
	fails(p.Strings("s"))("must be an array, not a string")
	fails(p.Strings("mixed"))(`json parameter "mixed.1" must be a string, not a number`)
	fails(p.Strings("nested"))(`json parameter "nested.0" must be a string, not an array`)
	fails(p.Strings("nulls"))(`json parameter "nulls.1" must be a string, not null`)
}

func TestMembersOfWhatIsNoObject(t *testing.T) {
	for doc, is := range map[string]string{`[1]`: "an array", `"q"`: "a string", `null`: "null", `1`: "a number"} {
		requireReason(t, failure(paramsOf(t, postJSON(doc), Options{}).String("q")), ErrMalformed, "the request body must be an object, not "+is)
	}
}

func TestEmptyBodyHasNoParameters(t *testing.T) {
	for _, contentType := range []string{formType, jsonType, "image/png"} {
		require.Equal(t, "query", value(paramsOf(t, post("/?q=query", contentType, ""), Options{}).String("q")))
	}
}
