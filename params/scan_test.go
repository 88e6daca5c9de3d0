package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func testOptions() *Options {
	o, _ := Options{}.withDefaults()
	return &o
}

func TestValidDocuments(t *testing.T) {
	for _, doc := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `-1.5e+10`, `1E5`, `0.5e-7`, `""`, `"\"\\\/\b\f\n\r\t\u00e9"`,
		"\t{ \"a\" : [ 1 , { \"a\" : null } , [ ] ] ,\r\n \"b\" : \"é😀\" } ", `"\ud83d\ude00"`, `{"a":{"a":{"a":1}}}`,
		`{"":1}`, `[[],[[]],{}]`, `"\uFFFD"`,
	} {
		require.True(t, json.Valid([]byte(doc)), doc)
		_, err := scan([]byte(doc), testOptions())
		require.NoError(t, err, doc)
	}
}

func TestFaultyDocuments(t *testing.T) {
	for doc, text := range map[string]string{
		`{"a":1} x`:             "has more after the JSON value, at byte 8",
		` {}  {}`:               "at byte 5",
		`{}{}`:                  "has more after the JSON value, at byte 2",
		`1 2`:                   "has more after the JSON value",
		`01`:                    "has more after the JSON value",
		`{"a":1`:                "is JSON that ends too early, at byte 6",
		`{"a`:                   "ends too early",
		`{"a"`:                  "ends too early",
		`{`:                     "ends too early",
		`[1,`:                   "ends too early",
		`"a\`:                   "ends too early",
		`-`:                     "ends too early",
		`tru`:                   "ends too early",
		`{"a":1,}`:              "is not valid JSON, unexpected '}' at byte 7",
		`[1,]`:                  "unexpected ']'",
		`[1 2]`:                 "unexpected '2'",
		`{a:1}`:                 "unexpected 'a' at byte 1",
		`{"a" 1}`:               "unexpected '1'",
		`{"a":}`:                "unexpected '}'",
		`'a'`:                   `unexpected '\''`,
		`nul!`:                  "unexpected '!'",
		`1.`:                    "ends too early",
		`1.e5`:                  "unexpected 'e'",
		`.5`:                    "unexpected '.'",
		`+1`:                    "unexpected '+'",
		`1e`:                    "ends too early",
		`NaN`:                   "unexpected 'N'",
		"\"a\nb\"":              `unexpected '\n'`,
		"\"a\x00b\"":            `unexpected '\x00'`,
		"\x00":                  `unexpected '\x00'`,
		"\ufeff{}":              `unexpected '\ufeff'`,
		"é":                     "unexpected 'é'",
		`"\x41"`:                "unexpected 'x'",
		`"\u12g4"`:              "malformed \\u escape",
		`"\u12"`:                "malformed \\u escape",
		`"a\u0000b"`:            "has a NUL character",
		`{"\u0000":1}`:          "has a NUL character",
		`"\ud800"`:              "has an unpaired surrogate",
		`"\udc00"`:              "has an unpaired surrogate",
		`"\ud800\u0041"`:        "has an unpaired surrogate",
		`"\ud800x"`:             "has an unpaired surrogate",
		`"\ud800\`:              "has an unpaired surrogate",
		"\"\xff\"":              "is not valid UTF-8",
		"{\"\xc3\x28\":1}":      "is not valid UTF-8",
		`{"a":1,"a":2}`:         `json parameter "a" is given twice`,
		`{"a":1,"\u0061":2}`:    `json parameter "a" is given twice`,
		`[{"b":{"x":1,"x":1}}]`: `json parameter "0.b.x" is given twice`,
	} {
		_, err := paramsOf(t, postJSON(doc), Options{}).String("q")
		requireReason(t, err, ErrMalformed, text)
		_, err = JSON[any](newContext(t, postJSON(doc), Options{}))
		requireReason(t, err, ErrMalformed, text)
	}
}

func TestDuplicateAmongMany(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 40} {
		var doc strings.Builder
		for i := range n {
			fmt.Fprintf(&doc, `"name%d":%d,`, i, i)
		}
		for i := range n {
			members := "{" + doc.String()
			_, err := scan([]byte(members+fmt.Sprintf(`"name%d":0}`, i)), testOptions())
			requireReason(t, err, ErrMalformed, fmt.Sprintf(`"name%d" is given twice`, i))

			d, err := scan([]byte(members+fmt.Sprintf(`"Name%d":0}`, i)), testOptions())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("Name%d", i), string(d.similar))
		}
		d, err := scan([]byte("{"+doc.String()+`"other":0}`), testOptions())
		require.NoError(t, err)
		require.Nil(t, d.similar)
		require.Len(t, d.members, n+1)
	}
}

func TestFoldNameIsEqualFold(t *testing.T) {
	names := []string{"", "k", "K", "\u212a", "s", "ſ", "ß", "ẞ", "σ", "ς", "Σ", "i", "İ", "ı", "é", "É", "ab", "aB"}
	for _, a := range names {
		for _, b := range names {
			require.False(t, beginApart([]byte(a), []byte(b)) && bytes.EqualFold([]byte(a), []byte(b)))
			equal := bytes.EqualFold([]byte(a), []byte(b))
			require.Equal(t, equal, foldName([]byte(a)) == foldName([]byte(b)), "%q %q", a, b)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		doc := func(depth int) string {
			return strings.Repeat(pair[0], depth) + "[]" + strings.Repeat(pair[1], depth)
		}
		_, err := scan([]byte(doc(9)), &Options{MaxDepth: 10, MaxParams: 10, MaxElements: 100})
		require.NoError(t, err)
		_, err = scan([]byte(doc(10)), &Options{MaxDepth: 10, MaxParams: 10, MaxElements: 100})
		e := requireReason(t, err, ErrTooLarge, "is nested more than 10 deep")
		status, _ := e.Problem()
		require.Equal(t, 413, status)
	}
	_, err := scan([]byte("[[],[[]],[]]"), &Options{MaxDepth: 3, MaxElements: 100})
	require.NoError(t, err, "siblings don't add up")
	_, err = scan([]byte(strings.Repeat("[", 500_000)), testOptions())
	requireReason(t, err, ErrTooLarge, "is nested more than 64 deep")
}

func TestMembersAreBounded(t *testing.T) {
	doc := `[{"a":1,"b":2,"c":3}]`
	_, err := scan([]byte(doc), &Options{MaxDepth: 5, MaxParams: 2, MaxElements: 100})
	requireReason(t, err, ErrTooLarge, "has an object with more than 2 members")
	_, err = scan([]byte(doc), &Options{MaxDepth: 5, MaxParams: 3, MaxElements: 100})
	require.NoError(t, err)
}

func TestElementsAreBounded(t *testing.T) {
	doc := `{"a":[1,[2],{"b":[]}],"c":{}}` // three members and four elements
	for most := range 10 {
		_, err := scan([]byte(doc), &Options{MaxDepth: 5, MaxParams: 9, MaxElements: most})
		if most < 7 {
			requireReason(t, err, ErrTooLarge, fmt.Sprintf("has more than %d elements", most))
		} else {
			require.NoError(t, err)
		}
	}
}

func TestUnquoteIsWhatJSONSays(t *testing.T) {
	for _, s := range []string{`""`, `"a"`, `"\u00e9\n"`, `"\"\\\/\b\f\n\r\t"`, `"x\ud83d\ude00y"`, `"\u20ac€"`, `"\uFFFF\ufffd"`} {
		var want string
		require.NoError(t, json.Unmarshal([]byte(s), &want))
		require.Equal(t, want, string(unquote([]byte(s))))
	}
}

// FuzzJSON checks the scanner against encoding/json: it accepts nothing that
// encoding/json refuses, refuses beyond that only what it is there to refuse,
// and finds the same members.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,null,-1.5e3],"c":{"d":"é\u00e9\ud83d\ude00"}}`, `{"a":1,"a":2}`, `[[[[]]]]`, `"\ud800"`,
		`{"a":1}x`, `"\u0000"`, "\"\xff\"", `{"A":1,"a":2}`, ``, ` `, `{"\u0061":"\n"}`, `-0.0e-1`, `{"a":1,}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := scan(data, testOptions())
		if err == nil && len(d.data) == 0 {
			require.Empty(t, bytes.TrimSpace(data))
			return
		}
		if err != nil {
			requireRefusedForAReason(t, data, err)
			return
		}
		require.True(t, json.Valid(data), "accepted %q", data)
		if d.data[0] != '{' {
			return
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &want))
		require.Len(t, d.members, len(want))
		for _, m := range d.members {
			require.Equal(t, string(want[string(m.name)]), string(m.value))
			if typeOf(m.value) == "a string" {
				var s string
				require.NoError(t, json.Unmarshal(m.value, &s))
				require.Equal(t, s, string(unquote(m.value)))
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
		"is given twice", "has a NUL character", "has an unpaired surrogate",
		"must be an RFC 3339 time", // encoding/json takes an hour of one digit and a comma
	} {
		if strings.Contains(err.Error(), reason) {
			return
		}
	}
	t.Fatalf("refused %q: %v", data, err)
}
