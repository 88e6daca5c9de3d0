package params

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func testOptions() *Options {
	o := defaults
	return &o
}

func TestFaultyDocuments(t *testing.T) {
	for doc, text := range map[string]string{
		`{"a":1} x`:             "invalid character 'x' after top-level value, at byte 8",
		`{}{}`:                  "after top-level value, at byte 2",
		`01`:                    "after top-level value",
		`{"a":1`:                "is JSON that ends too early, at byte 6",
		`[1,`:                   "ends too early",
		`"a\`:                   "ends too early",
		`{"a":1,}`:              "is not valid JSON, invalid character ',' at start of value, at byte 6",
		`[1 2]`:                 "invalid character '2'",
		`{"a":}`:                "invalid character '}'",
		`NaN`:                   "invalid character 'N'",
		"\"a\x00b\"":            `invalid character '\x00'`,
		"\ufeff{}":              `invalid character '\ufeff'`,
		`"a\u0000b"`:            "has a NUL character",
		`{"\u0000":1}`:          "has a NUL character",
		`"\\\u0000"`:            "has a NUL character",
		`"\ud800"`:              "invalid surrogate pair",
		`"\ud800\u0041"`:        "invalid surrogate pair",
		"\"\xff\"":              "invalid UTF-8",
		"{\"\xc3\x28\":1}":      "invalid UTF-8",
		`{"a":1,"\u0061":2}`:    `json parameter "a" is given twice`,
		`[{"b":{"x":1,"x":1}}]`: `json parameter "0.b.x" is given twice`,
	} {
		requireReason(t, failure(JSON[any](newContext(t, postJSON(doc), Options{}))), ErrMalformed, text)
		require.ErrorIs(t, failure(paramsOf(t, postJSON(doc), Options{}).String("q")), ErrMalformed)
	}
}

func parseError(text []byte, o *Options) error { return failure(parseJSON(text, o)) }

func TestDepthIsBounded(t *testing.T) {
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		doc := func(depth int) string {
			return strings.Repeat(pair[0], depth) + "[]" + strings.Repeat(pair[1], depth)
		}
		err := parseError([]byte(doc(9)), &Options{MaxDepth: 10, MaxParams: 10, MaxElements: 100})
		require.NoError(t, err)
		err = parseError([]byte(doc(10)), &Options{MaxDepth: 10, MaxParams: 10, MaxElements: 100})
		require.Equal(t, 413, statusOf(t, requireReason(t, err, ErrTooLarge, "is nested more than 10 deep")))
	}
	err := parseError([]byte("[[],[[]],[]]"), &Options{MaxDepth: 3, MaxElements: 100})
	require.NoError(t, err, "siblings don't add up")
	err = parseError([]byte(strings.Repeat("[", 500_000)), testOptions())
	requireReason(t, err, ErrTooLarge, "is nested more than 64 deep")
}

func TestMembersAreBounded(t *testing.T) {
	doc := `[{"a":1,"b":2,"c":3}]`
	err := parseError([]byte(doc), &Options{MaxDepth: 5, MaxParams: 2, MaxElements: 100})
	requireReason(t, err, ErrTooLarge, "has an object with more than 2 members")
	err = parseError([]byte(doc), &Options{MaxDepth: 5, MaxParams: 3, MaxElements: 100})
	require.NoError(t, err)
}

func TestElementsAreBounded(t *testing.T) {
	doc := `{"a":[1,[2],{"b":[]}],"c":{}}` // it has three members and four elements
	for most := 1; most < 10; most++ {
		err := tryJSON[any](paramsOf(t, postJSON(doc), Options{MaxElements: most}))
		if most < 7 {
			requireReason(t, err, ErrTooLarge, fmt.Sprintf("has more than %d elements", most))
		} else {
			require.NoError(t, err)
		}
	}
}

// FuzzJSON compares the members of objects with those that encoding/json finds. The package accepts only texts that
// encoding/json accepts. For any other text that it refuses, it has a documented reason.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,null,-1.5e3],"c":{"d":"é\u00e9\ud83d\ude00"}}`, `{"a":1,"a":2}`, `[[[[]]]]`, `"\ud800"`,
		`{"a":"\"\\\/\b\f\n\r\t","b":"\\u0000"}`, "\t{ \"a\" : [ 1 , { \"a\" : null } , [ ] ] ,\r\n \"b\" : \"é😀\" } ", `{"":"\uFFFD"}`,
		`{"a":1}x`, `"\u0000"`, "\"\xff\"", `{"A":1,"a":2}`, ``, ` `, `{"\u0061":"\n"}`, `-0.0e-1`, `{"a":1,}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object, err := parseJSONObject(data, testOptions())
		if err != nil {
			requireRefusedForAReason(t, data, err)
			return
		}
		if isBlank(data) {
			require.Empty(t, object.names)
			return
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &want), "accepted %q", data)
		require.Len(t, object.names, len(want))
		for i, name := range object.names {
			raw := object.items[i].raw
			require.Equal(t, string(want[name]), string(raw))
			if raw.Kind() == '"' {
				var s string
				require.NoError(t, json.Unmarshal(raw, &s))
				require.Equal(t, s, value(decodeJSONMember[string](raw, "")))
			}
		}
	})
}

func requireRefusedForAReason(t testing.TB, data []byte, err error) {
	t.Helper()
	if !json.Valid(data) || !utf8.Valid(data) || errors.Is(err, ErrTooLarge) {
		return
	}
	for _, reason := range []string{
		"is given twice", "has a NUL character", "invalid surrogate pair", "must be an object",
	} {
		if strings.Contains(err.Error(), reason) {
			return
		}
	}
	t.Fatalf("refused %q: %v", data, err)
}
