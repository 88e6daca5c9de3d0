package params

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

type level int

func (l *level) UnmarshalText(text []byte) error {
	*l = level(strings.Index("low mid top", string(text)))
	return nil
}

type ratio float64

func (r *ratio) UnmarshalText(text []byte) (err error) {
	*(*float64)(r), err = strconv.ParseFloat(string(text), 64)
	return err
}

// TestChecks binds a value from a query and from JSON to a field with tags.
func TestChecks(t *testing.T) {
	const invalid, empty = 422, 400
	for _, tt := range []struct {
		typ    reflect.Type
		tags   string
		query  string // "-" means that the test sends no query
		json   string
		status int
		want   string
	}{
		{reflect.TypeFor[int](), `min:"1" max:"10"`, "v=0", `0`, invalid, "must be at least 1"},
		{reflect.TypeFor[int](), `min:"1" max:"10"`, "v=1", `1`, 0, ""},
		{reflect.TypeFor[int](), `min:"1" max:"10"`, "v=10", `10`, 0, ""},
		{reflect.TypeFor[int](), `min:"1" max:"10"`, "v=11", `11`, invalid, "must be at most 10"},
		{reflect.TypeFor[int8](), `max:"-5"`, "v=-4", `-4`, invalid, "must be at most -5"},
		{reflect.TypeFor[float32](), `max:"0.1"`, "v=0.1", `0.1`, 0, ""},
		{reflect.TypeFor[time.Duration](), `min:"1s"`, "v=999ms", `999000000`, invalid, "must be at least 1s"},
		{reflect.TypeFor[level](), `min:"mid"`, "v=low", `"low"`, invalid, "must be at least mid"},
		{reflect.TypeFor[ratio](), `max:"1"`, "v=NaN", `"NaN"`, invalid, "must be at most 1"},
		{reflect.TypeFor[string](), `min:"2"`, "v=é", `"é"`, invalid, "must have at least 2 characters"},
		{reflect.TypeFor[string](), `max:"1"`, "v=é", `"é"`, 0, ""},
		{reflect.TypeFor[string](), `max:"1"`, "v=ab", `"ab"`, invalid, "must have at most 1 character"},
		{reflect.TypeFor[string](), `len:"3"`, "v=ab", `"ab"`, invalid, "must have exactly 3 characters"},
		{reflect.TypeFor[string](), `len:"3"`, "v=abcd", `"abcd"`, invalid, "must have exactly 3 characters"},
		{reflect.TypeFor[string](), `len:"3"`, "v=abc", `"abc"`, 0, ""},
		{reflect.TypeFor[string](), `min:"0" len:"0"`, "v=", `""`, 0, ""},
		{reflect.TypeFor[string](), `min:"2" required:"true"`, "-", ``, 400, "is missing"},
		{reflect.TypeFor[string](), `min:"2"`, "-", `null`, 0, ""},
		{reflect.TypeFor[[]string](), `min:"2"`, "v=a", `["a"]`, invalid, "must have at least 2 elements"},
		{reflect.TypeFor[[]string](), `max:"1"`, "v=a&v=b", `["a","b"]`, invalid, "must have at most 1 element"},
		{reflect.TypeFor[[]int](), `len:"2"`, "v=1&v=2", `[1,2]`, 0, ""},
		{reflect.TypeFor[[]byte](), `max:"1"`, "-", `"aGk="`, invalid, "must have at most 1 byte"},
		{reflect.TypeFor[map[string]int](), `max:"1"`, "-", `{"a":1,"b":2}`, invalid, "must have at most 1 element"},
		{reflect.TypeFor[string](), `oneof:"free  pro"`, "v=Free", `"Free"`, invalid, "must be one of free, pro"},
		{reflect.TypeFor[string](), `oneof:"free  pro"`, "v=pro", `"pro"`, 0, ""},
		{reflect.TypeFor[uint16](), `oneof:"1 80"`, "v=8", `8`, invalid, "must be one of 1, 80"},
		{reflect.TypeFor[int64](), `oneof:"-1 80"`, "v=80", `80`, 0, ""},
		{reflect.TypeFor[level](), `oneof:"low top"`, "v=mid", `"mid"`, invalid, "must be one of low, top"},
		{reflect.TypeFor[string](), `required:"nonempty" min:"2"`, "v=", `""`, empty, "must not be empty"},
		{reflect.TypeFor[string](), `required:"nonempty" min:"2"`, "v=a", `"a"`, invalid, "must have at least 2 characters"},
		{reflect.TypeFor[string](), `required:"nonempty"`, "v=+", `" "`, 0, ""},
		{reflect.TypeFor[string](), `required:"nonempty"`, "-", ``, empty, "is missing"},
		{reflect.TypeFor[string](), `required:"nonempty"`, "-", `null`, 400, "must not be null"},
		{reflect.TypeFor[[]string](), `required:"nonempty"`, "v=", `[""]`, 0, ""},
		{reflect.TypeFor[[]string](), `required:"nonempty"`, "-", `[]`, empty, "must not be empty"},
		{reflect.TypeFor[map[string]int](), `required:"nonempty"`, "-", `{}`, empty, "must not be empty"},
		{reflect.TypeFor[*int](), `min:"1"`, "v=0", `0`, invalid, "must be at least 1"},
		{reflect.TypeFor[*int](), `min:"1"`, "-", `null`, 0, ""},
		{reflect.TypeFor[**string](), `required:"nonempty"`, "v=", `""`, empty, "must not be empty"},
		{reflect.TypeFor[Opt[int]](), `min:"1"`, "v=0", `0`, invalid, "must be at least 1"},
		{reflect.TypeFor[*Opt[*int]](), `min:"1"`, "v=0", `0`, invalid, "must be at least 1"},
		{reflect.TypeFor[Opt[[]int]](), `min:"1"`, "-", `[]`, invalid, "must have at least 1 element"},
		{reflect.TypeFor[int](), `default:"0" min:"1"`, "-", ``, 0, ""},
	} {
		check := func(source string, r *http.Request) {
			err := paramsOf(t, r, Options{}).bind(reflect.New(structWith(tt.typ, source+`:"v" `+tt.tags)).Elem())
			if tt.want == "" {
				require.NoError(t, err, "%v %s", tt.typ, tt.tags)
				return
			}
			require.Error(t, err, "%v %s", tt.typ, tt.tags)
			e := err.(*Error)
			require.Equal(t, tt.want, e.Detail, "%v %s", tt.typ, tt.tags)
			require.Equal(t, "v", e.Name)
			status, _ := e.Problem()
			require.Equal(t, tt.status, status)
		}
		if tt.query != "-" {
			check("query", getRequest(strings.NewReplacer("é", url.QueryEscape("é")).Replace(tt.query)))
		}
		body := `{}`
		if tt.json != "" {
			body = `{"v":` + tt.json + `}`
		}
		check("json", postJSON(body))
	}
}

type purchase struct {
	Shop  string            `path:"shop" len:"2"`
	Size  int               `query:"size" max:"100"`
	Page  int               `query:"page" min:"1"`
	Tags  []int             `query:"tag" max:"2"`
	Title string            `json:"title" required:"nonempty" max:"5"`
	Kind  Opt[string]       `json:"kind" oneof:"buy sell"`
	Lines []item            `json:"lines" max:"2"`
	Notes map[string]string `json:"notes" max:"1"`
	Ship  *item             `json:"ship"`
}

type item struct {
	Count int    `json:"count" min:"1"`
	Name  string `json:"name" required:"true" max:"3"`
}

// TestChecksAreReportedWithOtherMistakes checks that failed checks are reported together with missing and malformed values.
func TestChecksAreReportedWithOtherMistakes(t *testing.T) {
	type report struct {
		status int
		list   []string
	}
	bind := func(target, body string) (got report) {
		r := httptest.NewRequest("POST", target, strings.NewReader(body))
		r.Header.Set("Content-Type", jsonType)
		r.SetPathValue("shop", "abc")
		validated := false
		_, err := Bind(newContext(t, r, Options{}), func(*purchase) error { validated = true; return nil })
		require.False(t, validated)
		list := errorsOf(t, err)
		got.status, _ = list.Problem()
		for _, e := range list {
			got.list = append(got.list, e.Name+" "+e.Detail)
		}
		return got
	}
	const line = `{"count":1,"name":"a"}`
	require.Equal(t, report{422, []string{
		"shop must have exactly 2 characters",
		"size must be at most 100",
		"tag must have at most 2 elements",
		"title must have at most 5 characters",
		"kind must be one of buy, sell",
		"lines.1.count must be at least 1",
		"notes must have at most 1 element",
		"ship.name must have at most 3 characters",
	}}, bind("/?size=101&tag=1&tag=2&tag=3", `{"title":"longer","kind":"rent","lines":[`+line+`,{"count":0,"name":"b"}],
		"notes":{"a":"","b":""},"ship":{"count":1,"name":"four"}}`))
	require.Equal(t, report{400, []string{
		"shop must have exactly 2 characters",
		"page must be a whole number",
		"tag must be a whole number", // the number of elements is not reported, too
		"title must not be empty",
		"lines must have at most 2 elements",
		"notes.a must be a string, not a number",
		"ship.count must be a whole number, not a string", // the check min is not reported, too
		"ship.name is missing",
	}}, bind("/?page=x&tag=x&tag=2&tag=3", `{"title":"","lines":[`+line+`,`+line+`,`+line+`],"notes":{"a":1,"b":""},"ship":{"count":"x"}}`))
}

func TestMistakesInTagsOfChecks(t *testing.T) {
	for _, tt := range []struct {
		typ        reflect.Type
		tags, want string
	}{
		{reflect.TypeFor[bool](), `max:"1"`, "V: a bool can't have the tag max"},
		{reflect.TypeFor[time.Time](), `min:"1"`, "a time.Time can't have the tag min"},
		{reflect.TypeFor[*[2]int](), `min:"1"`, "a [2]int can't have the tag min"},
		{reflect.TypeFor[any](), `len:"1"`, "a interface {} can't have the tag len"},
		{reflect.TypeFor[Opt[int]](), `len:"1"`, "a int can't have the tag len"},
		{reflect.TypeFor[int](), `min:"x"`, `the min "x" must be a whole number`},
		{reflect.TypeFor[int8](), `max:"128"`, `the max "128" is out of range`},
		{reflect.TypeFor[string](), `len:"-1"`, `the len "-1" is out of range`},
		{reflect.TypeFor[[]string](), `min:""`, `the min "" must be a whole number`},
		{reflect.TypeFor[time.Duration](), `max:"5"`, `the max "5" must be a duration`},
		{reflect.TypeFor[float64](), `oneof:"1 2"`, "a float64 can't have the tag oneof"},
		{reflect.TypeFor[[]string](), `oneof:"a b"`, "a []string can't have the tag oneof"},
		{reflect.TypeFor[int](), `oneof:"1 b"`, `the oneof "b" must be a whole number`},
		{reflect.TypeFor[string](), `oneof:" "`, "has an empty tag oneof"},
		{reflect.TypeFor[int](), `required:"nonempty"`, "a int can't have the tag required with nonempty"},
		{reflect.TypeFor[string](), `required:"nonempty" default:"x"`, "a required field needs no default"},
		{reflect.TypeFor[string](), `required:"false"`, `has the tag required with "false", want true or nonempty`},
		{reflect.TypeFor[map[string]purchase](), ``, "a map[string]params.purchase can't have required fields, defaults or checks in its elements"},
	} {
		v := reflect.New(structWith(tt.typ, `json:"v" `+tt.tags)).Interface()
		requireMistake(t, paramsOf(t, postJSON("{}"), Options{}).DecodeJSON(v), tt.want)
	}
	require.ErrorContains(t, tryJSON[struct {
		item `default:"1"`
	}](paramsOf(t, postJSON("{}"), Options{})), "a struct whose fields are those of the outer one can't")
}

type endlessOpt struct{ Opt[*endlessOpt] }

func TestTypeOfEndlessPointers(t *testing.T) {
	type p *p
	const want = "points to itself without end"
	for tag, ctx := range map[string]*reqctx.Host{
		`json:"p"`:                 newContext(t, postJSON(`{"p":1}`), Options{}),
		`json:"p" required:"true"`: newContext(t, postJSON(`{"p":1}`), Options{}),
		`query:"p" default:"1"`:    newContext(t, getRequest("p=1"), Options{}),
	} {
		for _, typ := range []reflect.Type{reflect.TypeFor[p](), reflect.TypeFor[[]*p](), reflect.TypeFor[endlessOpt]()} {
			v := reflect.New(structWith(typ, tag))
			requireMistake(t, value(From(ctx)).bind(v.Elem()), want)
			require.Equal(t, "V.X", Fault(v.Interface(), "V.X", "is bad").Name)
		}
	}
	requireMistake(t, tryJSON[p](paramsOf(t, postJSON("1"), Options{})), want)
}
