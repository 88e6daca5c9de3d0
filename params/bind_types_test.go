package params

import (
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// structWith returns a struct with a field V.
func structWith(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "V", Type: t, Tag: reflect.StructTag(tag)}})
}

// requireMistake requires an error that is not a mistake of the client.
func requireMistake(t testing.TB, err error, want string) {
	t.Helper()
	require.ErrorContains(t, err, want)
	var e *Error
	require.NotErrorAs(t, err, &e)
}

func TestMistakesInTheType(t *testing.T) {
	type inner struct {
		X int `json:"x"`
	}
	for _, tt := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{reflect.TypeFor[int](), `query:"a" form:"a"`, "V: names two sources, query and form"},
		{reflect.TypeFor[int](), ``, `V: has no tag of a source; params:"-" leaves it out`},
		{reflect.TypeFor[time.Time](), `json:"at,format:DateOnly"`, `has the tag "at,format:DateOnly", want a name without these options`},
		{reflect.TypeFor[map[string]int](), `query:"a"`, "V: a text cannot become a map[string]int"},
		{reflect.TypeFor[[]byte](), `query:"a"`, "a text cannot become a []uint8"},
		{reflect.TypeFor[[][]int](), `query:"a"`, "a text cannot become a [][]int"},
		{reflect.TypeFor[[]int](), `path:"a"`, "a text cannot become a []int"},
		{reflect.TypeFor[[]int](), `cookie:"a"`, "a text cannot become a []int"},
		{reflect.TypeFor[int](), `query:"a" default:"x"`, `the default "x" must be a whole number`},
		{reflect.TypeFor[int](), `query:"a" required:"true" default:"1"`, "a required field needs no default"},
		{reflect.TypeFor[int](), `json:"a" required:"true" default:"1"`, "V: a required field needs no default"},
		{reflect.TypeFor[int](), `query:"a,required"`, `has the tag "a,required", want a name`},
		{reflect.TypeFor[int](), `json:"a" required:"yes"`, `has the tag required with "yes", want true`},
		{reflect.TypeFor[int](), `query:""`, `has the tag "", want a name`},
		{reflect.TypeFor[inner](), `query:"a"`, "V: X: has no tag query"},
		{reflect.TypeFor[address](), `query:"a" required:"true"`, "a struct can't be required or have a default"},
		{reflect.TypeFor[[]address](), `query:"a" max:"1"`, "a list of structs can't be checked by a tag"},
		{reflect.TypeFor[Opt[address]](), `query:"a"`, "a text cannot become a params.address"},
		{reflect.TypeFor[[]Opt[address]](), `query:"a"`, "a text cannot become a params.address"},
		{reflect.TypeFor[*File](), `query:"a"`, "a file is a field of a form"},
		{reflect.TypeFor[[]*File](), `form:"a" max:"1"`, "a file can't be checked by a tag"},
		{reflect.TypeFor[*File](), `form:"a" min:"1"`, "a params.File can't have the tag min"},
		{structWith(reflect.TypeFor[*File](), `form:"f"`), `form:"a"`, "a file is a field of a form, and not of a struct in it"},
		{structWith(reflect.TypeFor[int](), `params:"-"`), `json:"a"`, `V: V: has params:"-", but in JSON it needs json:"-"`},
		{reflect.TypeFor[inner](), `header:"a"`, "a text cannot become a params.inner"},
		{reflect.TypeFor[Page](), `required:"true"`, "a struct whose fields are those of the outer one can't"},
		{reflect.TypeFor[Page](), `min:"1"`, "a struct whose fields are those of the outer one can't"},
		{reflect.TypeFor[struct{ *base }](), `json:"a"`, "beside fields that are embedded by pointer"},
	} {
		for range 2 {
			requireMistake(t, paramsOf(t, postJSON("{}"), Options{}).bind(reflect.New(structWith(tt.typ, tt.tag)).Elem()), tt.want)
		}
	}
	requireMistake(t, failure(JSON[struct {
		Owner string `params:"-"`
	}](newContext(t, postJSON(`{"Owner":"root"}`), Options{}))), `Owner: has params:"-"`)
	for want, bind := range map[string]func(*Params) error{
		"Bind of a int: it is not a struct": try[int],
		"but a body cannot be both": try[struct {
			A int `form:"a"`
			B int `json:"b"`
		}],
		"a: is not exported": try[struct {
			a int `query:"a"`
		}],
		`the query parameter "a" has a field already`: try[struct {
			A, B int `query:"a"`
		}],
		`the json parameter "x" has a field already`: try[struct {
			X     int `json:"x"`
			Group inner
		}],
	} {
		requireMistake(t, bind(paramsOf(t, postJSON("{}"), Options{})), want)
	}
}

func try[T any](p *Params) error { _, err := Bind[T](p.ctx); return err }

func TestDefaultsAreNotShared(t *testing.T) {
	type with struct {
		At time.Time `query:"at" default:"2026-01-02T03:04:05Z"`
		On bool      `query:"on" default:"true"`
		In Opt[int]  `query:"in" default:"7"`
		IP net.IP    `query:"ip" default:"10.0.0.1"`
		To *int      `query:"to" default:"1"`
	}
	for range 2 {
		got := value(Bind[with](newContext(t, getRequest(""), Options{})))
		require.Equal(t, 2026, got.At.Year())
		require.True(t, got.On)
		require.Equal(t, Some(7), got.In)
		require.Equal(t, "10.0.0.1", got.IP.String())
		require.Equal(t, 1, *got.To)
		got.In, got.IP[len(got.IP)-1], *got.To = Some(8), 9, 9
	}
	got := value(Bind[with](newContext(t, getRequest("on=off&in=1"), Options{})))
	require.False(t, got.On)
	require.Equal(t, Some(1), got.In)
}

func TestTextFaults(t *testing.T) {
	type texts struct {
		I8  int8          `query:"i8"`
		U8  uint8         `query:"u8"`
		F32 float32       `query:"f32"`
		B   bool          `query:"b"`
		T   time.Time     `query:"t"`
		D   time.Duration `query:"d"`
		A   netip.Addr    `query:"a"`
		P   *int          `query:"p"`
		O   Opt[uint]     `query:"o"`
	}
	for query, want := range map[string]string{
		"i8=128": "is out of range", "i8=1.0": "must be a whole number", "u8=256": "is out of range", "u8=-1": "is out of range", "u8=x": "must be a whole number",
		"f32=1e39": "is out of range", "f32=Inf": "must be a number", "b=yes": "must be true or false", "t=2026": "must be an RFC 3339 time",
		"d=5": "must be a duration", "a=300.1.1.1": "has a value that can't be decoded", "p=x": "must be a whole number", "o=-1": "is out of range",
	} {
		requireReason(t, failure(Bind[texts](newContext(t, getRequest(query), Options{}))), ErrMalformed, want)
	}
	_, err := Bind[texts](newContext(t, getRequest("a=300.1.1.1"), Options{}))
	require.NotContains(t, err.Error(), "ParseAddr", "a type's own words stay inside")
}

// The same texts are refused as times in a query and in JSON. Numbers and durations must be written as the documentation says.
func TestTextsThatAreNoTimesOrNumbers(t *testing.T) {
	type times struct {
		T time.Time `json:"t"`
	}
	for _, text := range []string{
		"2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+23:60", "2026-01-02T03:04:05-99:00", "2026-01-02T03:04:05+00:99", "2026-01-02T03:04:05-24:59",
		"2016-12-31T23:59:60Z", "2026-01-02T03:60:05Z", "2026-01-02T24:00:00Z", "2026-02-29T03:04:05Z", "2026-00-02T03:04:05Z",
		"2026-01-02t03:04:05Z", "2026-01-02T03:04:05z", "2026-01-02 03:04:05Z", " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z ",
		"10000-01-02T03:04:05Z", "+2026-01-02T03:04:05Z", "-2026-01-02T03:04:05Z", "026-01-02T03:04:05Z", "2026-1-02T03:04:05Z",
		"2026-01-02T03:04:05", "2026-01-02T03:04Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05,5Z", "2026-01-02T3:04:05Z", "2026-01-02",
		"2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+01", "2026-01-02T03:04:05+1:00", "2026-01-02T03:04:05 01:00", "2026-01-02T03:04:05UTC",
		"２026-01-02T03:04:05Z", "2026-W01-1T03:04:05Z", "",
	} {
		_, fault := parseTime(text, "")
		require.Equal(t, wantTime, fault, text)
		requireReason(t, failure(JSON[times](newContext(t, postJSON(`{"t":"`+text+`"}`), Options{}))), ErrMalformed, wantTime)
	}
	for _, text := range []string{
		"2026-01-02T03:04:05+23:59", "2026-01-02T03:04:05-23:59", "2026-01-02T03:04:05-00:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2024-02-29T00:00:00.1234567891+01:00",
	} {
		at, fault := parseTime(text, "")
		require.Empty(t, fault, text)
		require.True(t, at.Equal(value(JSON[times](newContext(t, postJSON(`{"t":"`+text+`"}`), Options{}))).T))
	}

	type values struct {
		I  int           `query:"i"`
		I8 int8          `query:"i8"`
		U  uint          `query:"u"`
		F  float64       `query:"f"`
		D  time.Duration `query:"d"`
	}
	integers := []string{"+5", "0x10", "1_0", "1e3", "1.0", " 5", "5 ", "", "-", "--5", "٣", "Inf", "NaN", "1,000", "0b1", "0o7"}
	floats := []string{"+1.5", "0x1p-2", "1_0.5", "Inf", "-inf", "NaN", "infinity", " 1", "1 ", "", ".", "-", "e5", "1e", "1e+", "1,5", "1e999", "-1e999", "1.5f"}
	durations := []string{"5", "1e3s", "+5s", "1_0s", "0x5s", "infs", "5 s", " 5s", "5S", "1d", "", "s", "2562048h", "-2562048h", "9223372036854775808ns", "1h-5m", "1.s5"}
	for name, all := range map[string][]string{"i": integers, "i8": append(integers, "128", "-129"), "u": append(integers, "-1", "-0x1"), "f": floats, "d": durations} {
		for _, text := range all {
			_, err := Bind[values](newContext(t, getRequest(url.Values{name: {text}}.Encode()), Options{}))
			require.ErrorIs(t, err, ErrMalformed, "%s=%q", name, text)
		}
	}
	for _, text := range integers {
		require.ErrorIs(t, failure(paramsOf(t, getRequest(url.Values{"i": {text}}.Encode()), Options{}).Int("i")), ErrMalformed, "%q", text)
	}
	for _, text := range floats {
		require.ErrorIs(t, failure(paramsOf(t, getRequest(url.Values{"f": {text}}.Encode()), Options{}).Float("f")), ErrMalformed, "%q", text)
	}
	got := value(Bind[values](newContext(t, getRequest("i=-007&i8=-128&u=0&f=-1e%2B3&d=-1.5h3m2us"), Options{})))
	require.Equal(t, values{-7, -128, 0, -1000, -(93*time.Minute + 2*time.Microsecond)}, got)
}
