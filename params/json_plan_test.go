package params

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMistakeInATypeIsNotTheClients decodes bodies into types that package json can't decode them into.
func TestMistakeInATypeIsNotTheClients(t *testing.T) {
	type must struct {
		X int `json:"x" required:"true"`
	}
	type itself struct {
		X int               `json:"x" default:"1"`
		M map[string]itself `json:"m"`
	}
	type twice struct {
		A int `json:"B"`
		B int
	}
	const onlyNumbers = "V: the tag option string is only for numbers"
	for _, test := range []struct {
		typ           reflect.Type
		options, body string
		want          string
	}{
		{reflect.TypeFor[bool](), ",string", `"true"`, onlyNumbers},
		{reflect.TypeFor[string](), ",string", `"x"`, onlyNumbers},
		{reflect.TypeFor[[]int](), ",string", `["1"]`, onlyNumbers},
		{reflect.TypeFor[map[string]int](), ",omitempty,string", `{}`, onlyNumbers},
		{reflect.TypeFor[*time.Time](), ",string", `"2026-01-02T03:04:05Z"`, onlyNumbers},
		{reflect.TypeFor[any](), ",string", `"1"`, onlyNumbers},
		{reflect.MapOf(reflect.TypeFor[string](), structWith(reflect.TypeFor[bool](), `json:",string"`)), "", `{"a":{"v":"true"}}`, onlyNumbers},
		{reflect.TypeFor[chan int](), "", `1`, "JSON cannot become a chan int"},
		{reflect.TypeFor[[]fmt.Stringer](), "", `[]`, "JSON cannot become a fmt.Stringer"},
		{structWith(reflect.TypeFor[int](), `json:"a,"`), "", `{}`, "malformed `json` tag"},
		{reflect.TypeFor[twice](), "", `{}`, "conflict over JSON object name"},
		{reflect.TypeFor[map[string]*must](), "", `{}`, "a map[string]*params.must can't have required fields"},
		{reflect.TypeFor[[][2][]must](), "", `[]`, "a [2][]params.must can't have required fields"},
		{reflect.TypeFor[itself](), "", `{}`, "a map[string]params.itself can't have"},
		{reflect.TypeFor[map[bool]int](), "", `{"true":1}`, "the name of a JSON member cannot become a bool"},
		{reflect.TypeFor[map[struct{ N int }]int](), "", `{"1":1}`, "the name of a JSON member cannot become a struct { N int }"},
		{reflect.TypeFor[map[[2]int]int](), "", `{"1":1}`, "the name of a JSON member cannot become a [2]int"},
	} {
		for _, body := range []string{`{}`, `{"v":` + test.body + `}`} {
			v := reflect.New(structWith(test.typ, `json:"v`+test.options+`"`)).Interface()
			requireMistake(t, paramsOf(t, postJSON(body), Options{}).DecodeJSON(v), test.want)
		}
	}
	type list []list
	require.NoError(t, failure(rootOf(use{reflect.TypeFor[map[string]list](), false})), "it ends")
	require.NoError(t, failure(rootOf(use{structWith(reflect.TypeFor[netip.Addr](), `json:",string"`), false})), "its method decides")
}

func TestNumbersInStrings(t *testing.T) {
	type numbers struct {
		N    int            `json:"n,string"`
		U    *uint8         `json:"u,string"`
		F    float32        `json:"f,string"`
		Num  json.Number    `json:"num,string"`
		Took *time.Duration `json:"took,string"`
	}
	got := value(JSON[numbers](newContext(t, postJSON(`{"n":"1","u":"2","f":"1.5","num":1,"took":"3"}`), Options{})))
	u, d := uint8(2), time.Duration(3)
	require.Equal(t, numbers{N: 1, U: &u, F: 1.5, Num: "1", Took: &d}, got)
	for body, want := range map[string]string{
		`{"n":1}`:   "must be a string with a whole number, not a number",
		`{"u":1}`:   "must be a string with a whole number, not negative, not a number",
		`{"f":1}`:   "must be a string with a number, not a number",
		`{"n":"x"}`: "must be a whole number",
		`{"u":"x"}`: "must be a whole number, not negative",
	} {
		_, err := JSON[numbers](newContext(t, postJSON(body), Options{}))
		require.Equal(t, want, requireReason(t, err, ErrMalformed, "").Detail, body)
	}
}

func TestKeysOfMaps(t *testing.T) {
	type maps struct {
		Ints  map[int8]int          `json:"ints"`
		Bytes map[[1]byte]int       `json:"bytes"`
		Times map[time.Time]int     `json:"times"`
		Addrs map[netip.Addr]int    `json:"addrs"`
		Took  map[time.Duration]int `json:"took"`
		Any   map[any]int           `json:"any"`
	}
	got, err := JSON[maps](newContext(t, postJSON(`{"ints":{"-1":1},"bytes":{"AQ==":1},"times":{"2026-01-02T03:04:05Z":1},
		"addrs":{"::1":1},"took":{"7":1},"any":{"x":1}}`), Options{}))
	require.NoError(t, err)
	require.Equal(t, maps{
		Ints: map[int8]int{-1: 1}, Bytes: map[[1]byte]int{{1}: 1}, Any: map[any]int{"x": 1}, Took: map[time.Duration]int{7: 1},
		Times: map[time.Time]int{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC): 1}, Addrs: map[netip.Addr]int{netip.IPv6Loopback(): 1},
	}, got)
}
