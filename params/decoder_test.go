package params

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everything has fields of every kind that is read here, and of some that aren't.
type everything struct {
	S    string            `json:"s"`
	B    bool              `json:"b"`
	I    int               `json:"i"`
	I8   int8              `json:"i8"`
	U    uint              `json:"u"`
	U16  uint16            `json:"u16"`
	F    float64           `json:"f"`
	F32  float32           `json:"f32"`
	T    time.Time         `json:"t"`
	P    *int              `json:"p"`
	PP   **string          `json:"pp"`
	L    []string          `json:"l"`
	LL   [][]int           `json:"ll"`
	LP   []*int            `json:"lp"`
	N    *everything       `json:"n"`
	NL   []everything      `json:"nl"`
	A    [2]int            `json:"a"`
	M    map[string]int    `json:"m"`
	MS   map[string]nested `json:"ms"`
	Any  any               `json:"any"`
	Raw  json.RawMessage   `json:"raw"`
	Num  json.Number       `json:"num"`
	Byte []byte            `json:"byte"`
	Addr netip.Addr        `json:"addr"`
	Big  *big.Int          `json:"big"`
	Opt  Opt[int]          `json:"opt"`
	Str  quoted            `json:"str"`
	Dup  shadowing         `json:"dup"`
	Skip int               `json:"-"`
	//lint:ignore SA5008 it is how encoding/json is told of the name "-"
	Dash int `json:"-,"`
	NoTag
	Untagged int
	private  int
}

type nested struct {
	X int    `json:"x"`
	Y string `json:"ÿ"`
}

type NoTag struct{ Deep, Deeper string }

type quoted struct {
	N int `json:"n,string"`
}

type shadowing struct {
	NoTag
	Deep int
}

const everythingJSON = `{"s":"a\u00e9\n","b":true,"i":-5,"i8":127,"u":5,"u16":65535,"f":-1.5e3,"f32":0.25,
	"t":"2026-01-02T03:04:05.5+02:00","p":1,"pp":"x","l":["a","b","c","d","e","f"],"ll":[[1],[],[2,3]],"lp":[1,null,2],
	"n":{"s":"inner","n":null,"unknown":{"a":[1,{"b":2}]}},"nl":[{"i":1},{},{"i":3}],"a":[1,2],"m":{"k":1},"ms":{"k":{"x":1}},
	"any":{"a":[1,"b",null]},"raw":{"r": 1},"num":1.50,"byte":"aGk=","addr":"192.0.2.1","big":123456789012345678901234567890,
	"opt":7,"str":{"n":"5"},"dup":{"Deep":1,"Deeper":"d"},"-":3,"deep":"folded","Deeper":"d","UNTAGGED":9}`

func TestDecodesWhatEncodingJSONDecodes(t *testing.T) {
	var want everything
	require.NoError(t, json.Unmarshal([]byte(everythingJSON), &want))
	got, err := JSON[everything](newContext(t, postJSON(everythingJSON), Options{}))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Zero(t, got.private)

	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(everythingJSON), &m))
	for name := range m {
		m[name] = nil
	}
	doc, err := json.Marshal(m)
	require.NoError(t, err)
	requireSameDecoding(t, doc, func() any { return filled() })
}

// filled has something in every field.
func filled() *everything {
	v := new(everything)
	if err := json.Unmarshal([]byte(everythingJSON), v); err != nil {
		panic(err)
	}
	return v
}

// requireSameDecoding decodes doc into two values that make makes.
func requireSameDecoding(t testing.TB, doc []byte, make func() any) {
	t.Helper()
	want, got := make(), make()
	wantErr := json.Unmarshal(doc, want)
	v := reflect.ValueOf(got).Elem()
	c, err := codecOf(v.Type())
	require.NoError(t, err)
	ok, gotErr := decodeDocument(doc, testOptions(), c, v)
	if gotErr != nil {
		if wantErr == nil {
			requireRefusedForAReason(t, doc, gotErr)
		}
		return
	}
	if !ok {
		require.Error(t, wantErr)
		return
	}
	require.NoError(t, wantErr, "accepted %q", doc)
	require.Equal(t, want, got, "%q", doc)
}

func TestDecodingIntoWhatIsThere(t *testing.T) {
	type T struct {
		A, B int
		P    *int
		L    []int
		M    map[string]int
	}
	one := 1
	shared := append(make([]int, 0, 16), 1, 2, 3) // with room to be written into
	v := T{A: 1, B: 2, P: &one, L: shared, M: map[string]int{"a": 1}}
	require.NoError(t, paramsOf(t, postJSON(`{"A":5,"P":6,"L":[9],"M":{"b":2}}`), Options{}).DecodeJSON(&v))
	require.Equal(t, T{A: 5, B: 2, P: &one, L: []int{9}, M: map[string]int{"a": 1, "b": 2}}, v)
	require.Equal(t, 6, one)
	require.Equal(t, []int{1, 2, 3}, shared, "a slice is a new one")
}

func TestElementsBeginAsZero(t *testing.T) {
	type T struct{ A, B int }
	got, err := JSON[[]T](newContext(t, postJSON(`[{"A":1},{"B":2},{},{"A":3},{"B":4}]`), Options{}))
	require.NoError(t, err)
	require.Equal(t, []T{{A: 1}, {B: 2}, {}, {A: 3}, {B: 4}}, got)
}

func TestNamesOfKnownFields(t *testing.T) {
	for doc, text := range map[string]string{
		`{"s":"a","s":"b"}`:                 `"s" is given twice`,
		`{"n":{"n":{"i":1,"I":2}}}`:         `"n.n.I" is given twice, in different letter case`,
		`{"x":1,"y":2,"x":3}`:               `"x" is given twice`,
		`{"nl":[{},{"x":1,"x":2}]}`:         `"nl.1.x" is given twice`,
		`{"m":{"a":1,"a":2}}`:               `"m.a" is given twice`,
		`{"ms":{"a":{"x":1,"X":2}}}`:        "in different letter case",
		`{"s":"a","unknown":{"q":1,"q":2}}`: `"unknown.q" is given twice`,
	} {
		_, err := JSON[everything](newContext(t, postJSON(doc), Options{}))
		requireReason(t, err, ErrMalformed, text)
	}
	got, err := JSON[everything](newContext(t, postJSON(`{"x":1,"X":2,"m":{"a":1,"A":2}}`), Options{}))
	require.NoError(t, err, "names that mean no field confuse nobody")
	require.Len(t, got.M, 2)
}

func TestUnknownMembersAreRefusedEverywhere(t *testing.T) {
	for doc, want := range map[string]string{
		`{"zz":1}`: "zz", `{"n":{"zz":1}}`: "n.zz", `{"nl":[{},{"zz":[1]}]}`: "nl.1.zz", `{"ms":{"k":{"zz":1}}}`: "ms.zz",
	} {
		_, err := JSON[everything](newContext(t, postJSON(doc), Options{DisallowUnknownFields: true}))
		require.Equal(t, want, requireReason(t, err, ErrMalformed, "is unknown").Name)
	}
}

func TestSyntaxErrorsInsideOfValues(t *testing.T) {
	for _, doc := range []string{
		`{"i":1`, `{"i":}`, `{"i":01}`, `{"i":1,}`, `{"l":["a",]}`, `{"l":["a"`, `{"b":tru}`, `{"b":nul}`, `{"s":"a}`, `{"i":1}x`, `{"t":"2026`,
		`{"f":1.}`, `{"f":-}`, `{"i":"x}`, `{"unknown":[}`, `{"n":{"i":1}`, `{"n":{,}}`, `{"addr":"1`, `{"raw":{]}`, `[`, `{"s":"\x"}`, `{"i" 1}`, `{i:1}`,
	} {
		require.False(t, json.Valid([]byte(doc)), doc)
		_, err := JSON[everything](newContext(t, postJSON(doc), Options{}))
		require.ErrorIs(t, err, ErrMalformed, doc)
	}
}

func TestBudgetsOfDecoding(t *testing.T) {
	decode := func(doc string, o Options) error {
		_, err := JSON[everything](newContext(t, postJSON(doc), o))
		return err
	}
	deep := strings.Repeat(`{"n":`, 10) + "{}" + strings.Repeat("}", 10)
	require.NoError(t, decode(deep, Options{MaxDepth: 11}))
	requireReason(t, decode(deep, Options{MaxDepth: 10}), ErrTooLarge, "is nested more than 10 deep")
	lists := `{"ll":[[1],[2,3],[]],"nl":[{"i":1}]}` // three members and seven elements
	require.NoError(t, decode(lists, Options{MaxElements: 10}))
	requireReason(t, decode(lists, Options{MaxElements: 9}), ErrTooLarge, "has more than 9 elements")
	require.NoError(t, decode(`{"i":1,"x":2,"u":3}`, Options{MaxParams: 3}))
	requireReason(t, decode(`{"i":1,"x":2,"u":3}`, Options{MaxParams: 2}), ErrTooLarge, "more than 2 members")
}

func TestLargeStructsAreLeftToEncodingJSON(t *testing.T) {
	fields := make([]reflect.StructField, mostFields+1)
	for i := range fields {
		fields[i] = reflect.StructField{Name: "F" + strings.Repeat("x", i), Type: reflect.TypeFor[int]()}
	}
	v := reflect.New(reflect.StructOf(fields))
	require.NoError(t, paramsOf(t, postJSON(`{"Fx":1,"`+fields[mostFields].Name+`":2}`), Options{}).DecodeJSON(v.Interface()))
	require.EqualValues(t, 1, v.Elem().Field(1).Int())
	require.EqualValues(t, 2, v.Elem().Field(mostFields).Int())
}

// FuzzDecode checks the decoder against encoding/json: what both accept they
// understand alike, and what encoding/json accepts is only refused for a reason.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(everythingJSON))
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"n":{"n":{"n":null}}}`, `{"i":1e2}`, `{"i8":128}`, `{"S":"a","s":"b"}`, `{"ſ":"kelvin"}`, `{"opt":null}`,
		`{"ms":{"a":{"x":1,"X":2}}}`, `{"num":-0.0e-1}`, `{"byte":"?"}`, `{"str":{"n":"x"}}`, `{"a":[1,2,3]}`, `{"nl":[{"i":1},null,{"i":2}]}`,
		`{"t":"2026-01-02T3:04:05Z"}`, `{"pp":null}`, `{"any":1e999}`, `{"f":1e999}`, `{"l":[1,"a",{}]}`, `{"addr":"fe80::1%eth0"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		requireSameDecoding(t, doc, func() any { return new(everything) })
	})
}
