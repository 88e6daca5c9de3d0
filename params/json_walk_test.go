package params

import (
	"bytes"
	stdjson "encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// everything has fields of all kinds, for comparison with other decoders.
type everything struct {
	S    string             `json:"s"`
	B    bool               `json:"b"`
	I    int                `json:"i"`
	I8   int8               `json:"i8"`
	U    uint               `json:"u"`
	U16  uint16             `json:"u16"`
	F    float64            `json:"f"`
	F32  float32            `json:"f32"`
	T    time.Time          `json:"t"`
	P    *int               `json:"p"`
	PP   **string           `json:"pp"`
	L    []string           `json:"l"`
	LL   [][]int            `json:"ll"`
	LP   []*int             `json:"lp"`
	N    *everything        `json:"n"`
	NL   []everything       `json:"nl"`
	A    [2]int             `json:"a"`
	M    map[string]int     `json:"m"`
	MS   map[string]nested  `json:"ms"`
	Any  any                `json:"any"`
	Raw  stdjson.RawMessage `json:"raw"`
	Byte []byte             `json:"byte"`
	Addr netip.Addr         `json:"addr"`
	Big  *big.Int           `json:"big"`
	Opt  Opt[int]           `json:"opt"`
	Str  quoted             `json:"str"`
	Dup  shadowing          `json:"dup"`
	Skip int                `json:"-"`
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
	"any":{"a":[1,"b",null]},"raw":{"r": 1},"byte":"aGk=","addr":"192.0.2.1","big":123456789012345678901234567890,
	"opt":7,"str":{"n":"5"},"dup":{"Deep":1,"Deeper":"d"},"Deep":"e","Deeper":"d","Untagged":9}`

func TestDecodesWhatEncodingJSONDecodes(t *testing.T) {
	var want everything
	require.NoError(t, stdjson.Unmarshal([]byte(everythingJSON), &want))
	got := value(JSON[everything](newContext(t, postJSON(everythingJSON), Options{})))
	require.Equal(t, want, got)
	require.Zero(t, got.private)

	var m map[string]any
	require.NoError(t, stdjson.Unmarshal([]byte(everythingJSON), &m))
	for name := range m {
		m[name] = nil
	}
	doc := value(stdjson.Marshal(m))
	requireSameDecoding(t, doc, func() any { return filled() })
}

// filled returns a value whose fields are not zero.
func filled() *everything {
	v := new(everything)
	if err := stdjson.Unmarshal([]byte(everythingJSON), v); err != nil {
		panic(err)
	}
	return v
}

// requireSameDecoding decodes doc with package json and value by value, as if each type had demands. It requires the same
// result.
func requireSameDecoding(t testing.TB, doc []byte, make func() any) {
	t.Helper()
	want, got := make(), make()
	c := newCompiler(SourceJSON)
	p := value(c.planFor(reflect.TypeOf(want).Elem()))
	require.NoError(t, c.finish())
	for _, inner := range c.plans {
		inner.demands = true
	}
	b := &binder{options: &Options{MaxDepth: maxDepth, MaxElements: math.MaxInt, MaxParams: math.MaxInt}}
	b.decode(p, doc, reflect.ValueOf(got).Elem())
	err := b.faults.asError()
	if wantErr := json.Unmarshal(doc, want, durationsAsNumbers); bytes.Contains(doc, []byte(`\u0000`)) || wantErr != nil {
		require.True(t, wantErr == nil || err != nil, "%q: %v", doc, wantErr)
		return
	}
	require.NoError(t, err, "%q", doc)
	require.True(t, stdjson.Valid(doc), "accepted %q", doc)
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
	shared := append(make([]int, 0, 16), 1, 2, 3) // with spare capacity
	v := T{A: 1, B: 2, P: &one, L: shared, M: map[string]int{"a": 1}}
	require.NoError(t, paramsOf(t, postJSON(`{"A":5,"P":6,"L":[9],"M":{"b":2}}`), Options{}).DecodeJSON(&v))
	require.Equal(t, T{A: 5, B: 2, P: &one, L: []int{9}, M: map[string]int{"a": 1, "b": 2}}, v)
	require.Equal(t, 6, one)
	require.Equal(t, []int{9, 2, 3}, shared, "as package json does")
}

func TestNamesAreExact(t *testing.T) {
	got := value(JSON[everything](newContext(t, postJSON(`{"S":"a","x":1,"X":2,"m":{"a":1,"A":2},"DEEP":"b"}`), Options{})))
	require.Equal(t, everything{M: map[string]int{"a": 1, "A": 2}}, got)
}

func TestUnknownMembersAreRefusedEverywhere(t *testing.T) {
	for doc, want := range map[string]string{
		`{"zz":1}`: "zz", `{"n":{"zz":1}}`: "n.zz", `{"nl":[{},{"zz":[1]}]}`: "nl.1.zz", `{"ms":{"k":{"zz":1}}}`: "ms.k.zz", `{"S":"a"}`: "S",
	} {
		err := failure(JSON[everything](newContext(t, postJSON(doc), Options{DisallowUnknownFields: true})))
		require.Equal(t, want, requireReason(t, err, ErrMalformed, "is unknown").Name)
	}
}

// lazy is a type whose decoding method returns an error before it has read the value.
type lazy struct{}

func (*lazy) UnmarshalJSONFrom(*jsontext.Decoder) error { return errPicky }

func TestEveryMistakeIsReported(t *testing.T) {
	type all struct {
		everything
		Lazy  lazy                     `json:"lazy"`
		Wait  time.Duration            `json:"wait"`
		Waits map[string]time.Duration `json:"waits"`
		Opts  map[string]Opt[nested]   `json:"opts"`
	}
	_, err := JSON[all](newContext(t, postJSON(`{"s":1,"b":{"x":1},"u":-1,"i8":-129,"f":"1","f32":1e39,"t":"2026-01-02","p":[1],"l":{"a":[2]},
		"ll":[[1,"2"],3],"lp":[null,true],"n":{"n":[]},"nl":[{"i":null},{"i":1.5},"x"],"a":[1],"m":{"k":"v"},"ms":{"k":{"x":[]}},"any":1e999,
		"byte":[1],"addr":"x","big":1.5,"opt":"7","str":{"n":"x"},"lazy":[1],"wait":"1s","waits":{"w":"1s"},
		"opts":{"o":{"x":"1"}},"Deep":2}`), Options{}))
	list := errorsOf(t, err)
	var details []string
	for _, e := range list {
		require.ErrorIs(t, e, ErrMalformed)
		details = append(details, e.Pointer()+" "+e.Detail)
	}
	require.Equal(t, []string{
		"#/s must be a string, not a number",
		"#/b must be true or false, not an object",
		"#/i8 is out of range",
		"#/u must be a whole number, not negative",
		"#/f must be a number, not a string",
		"#/f32 is out of range",
		"#/t must be an RFC 3339 time, such as 2006-01-02T15:04:05Z",
		"#/p must be a whole number, not an array",
		"#/l must be an array, not an object",
		"#/ll/0/1 must be a whole number, not a string",
		"#/ll/1 must be an array, not a number",
		"#/lp/1 must be a whole number, not a boolean",
		"#/n/n must be an object, not an array",
		"#/nl/1/i must be a whole number",
		"#/nl/2 must be an object, not a string",
		"#/a must be an array of 2",
		"#/m/k must be a whole number, not a string",
		"#/ms/k/x must be a whole number, not an array",
		"#/any is out of range",
		"#/byte must be bytes in base64, not an array",
		"#/addr has a value that can't be decoded",
		"#/big has a value that can't be decoded",
		"#/opt must be a whole number, not a string",
		"#/str/n must be a whole number",
		"#/Deep must be a string, not a number",
		"#/lazy has a value that can't be decoded",
		"#/wait must be a whole number, not a string",
		"#/waits/w must be a whole number, not a string",
		"#/opts/o/x must be a whole number, not a string",
	}, details)
	require.ErrorIs(t, err, errPicky)

	type rest struct {
		Wait  time.Duration            `json:"wait"`
		Waits map[string]time.Duration `json:"waits"`
		Opts  map[string]Opt[nested]   `json:"opts"`
	}
	got := value(JSON[rest](newContext(t, postJSON(`{"wait":1000,"waits":{"w":5},"opts":{"a":null,"b":{"x":1}}}`), Options{})))
	require.Equal(t, rest{
		Wait: 1000, Waits: map[string]time.Duration{"w": 5},
		Opts: map[string]Opt[nested]{"a": Null[nested](), "b": Some(nested{X: 1})},
	}, got)
}

// TestBindTakesOnlyWhatItNames checks that Bind does not fill fields without a tag json. Package json would fill them.
func TestBindTakesOnlyWhatItNames(t *testing.T) {
	type group struct {
		City string `json:"city"`
	}
	type user struct {
		Name  string `json:"name"`
		Query string `query:"q"`
		Owner string `params:"-"`
		Group group
	}
	doc := `{"name":"ada","Query":"x","Owner":"root","Group":{"city":"x"},"city":"Rome"}`
	require.Equal(t, user{Name: "ada", Group: group{"Rome"}}, value(Bind[user](newContext(t, postJSON(doc), Options{}))))
	require.Len(t, errorsOf(t, failure(Bind[user](newContext(t, postJSON(doc), Options{DisallowUnknownFields: true})))), 3)

	type owned struct {
		Owner string `params:"-"`
		Group struct {
			Name string `json:"name"`
			City string `json:"city"`
		}
	}
	require.Empty(t, value(Bind[owned](newContext(t, postJSON(doc), Options{}))).Owner, "the struct has as many fields as the number of names from JSON")
}

type base struct {
	ID   int      `json:"id" required:"true"`
	Opt  Opt[int] `json:"opt"`
	Tags []string `json:"tags"`
}

func TestFieldsOfAnEmbeddedStruct(t *testing.T) {
	type user struct {
		base
		Name string `json:"name" default:"ada"`
	}
	got := value(JSON[user](newContext(t, postJSON(`{"id":7,"opt":null,"tags":["a"]}`), Options{})))
	require.Equal(t, user{base{7, Null[int](), []string{"a"}}, "ada"}, got)
	_, err := Bind[user](newContext(t, postJSON(`{"tags":[]}`), Options{}))
	require.Equal(t, "id", requireReason(t, err, ErrMissing, "is missing").Name)
}

// counted is a type that counts how often values of it are decoded.
type counted struct{}

var decodings int

func (*counted) UnmarshalJSON([]byte) error { decodings++; return nil }

type deep struct {
	C []deep  `json:"c"`
	N counted `json:"n"`
	X int     `json:"x"`
}

func TestMistakeInADeepValueIsFoundAtOnce(t *testing.T) {
	decodings = 0
	doc := strings.Repeat(`{"c":[`, 30) + `{"n":1,"x":"1"}` + strings.Repeat("]}", 30)
	require.ErrorIs(t, failure(JSON[deep](newContext(t, postJSON(doc), Options{}))), ErrMalformed)
	require.Equal(t, 2, decodings, "once with the whole body, and once alone")
}

// FuzzDecode compares our decoder with package json. They accept the same texts, except for NUL characters, and decode them
// to the same values.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(everythingJSON))
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"n":{"n":{"n":null}}}`, `{"i":1e2}`, `{"i8":128}`, `{"S":"a","s":"b"}`, `{"ſ":"kelvin"}`, `{"opt":null}`,
		`{"ms":{"a":{"x":1,"X":2}}}`, `{"byte":"?"}`, `{"str":{"n":"x"}}`, `{"a":[1,2,3]}`, `{"nl":[{"i":1},null,{"i":2}]}`,
		`{"t":"2026-01-02T3:04:05Z"}`, `{"pp":null}`, `{"any":1e999}`, `{"f":1e999}`, `{"l":[1,"a",{}]}`, `{"addr":"fe80::1%eth0"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		requireSameDecoding(t, doc, func() any { return new(everything) })
	})
}

// TestWalkOfAGoodText decodes into a struct that is not zero. Fields with json:"-" stay, and null makes a struct zero.
func TestWalkOfAGoodText(t *testing.T) {
	type inner struct {
		N int `json:"n" default:"7"`
		M int `json:"m"`
	}
	v := struct {
		Must  int   `json:"must" required:"true"`
		Skip  int   `json:"-"`
		Inner inner `json:"inner"`
	}{Skip: 1, Inner: inner{N: 2, M: 3}}
	require.NoError(t, paramsOf(t, postJSON(`{"must": 4, "-": 5, "Skip": 6, "inner": null}`), Options{}).DecodeJSON(&v))
	require.Equal(t, 4, v.Must)
	require.Equal(t, 1, v.Skip)
	require.Equal(t, inner{N: 7}, v.Inner)
}
