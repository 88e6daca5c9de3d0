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

// TestMistakeInATypeIsNotTheClients checks that types which JSON cannot be decoded into are not reported to the client.
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
	for _, test := range []struct {
		typ           reflect.Type
		options, body string
		want          string
	}{
		{reflect.TypeFor[[]json.Number](), "", `[]`, "JSON cannot become a json.Number"},
		{reflect.TypeFor[chan int](), "", `1`, "JSON cannot become a chan int"},
		{reflect.TypeFor[struct{ F *File }](), "", `{"F":{"Size":1}}`, "JSON cannot become a params.File"},
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
	require.NoError(t, failure(rootOf(use{reflect.TypeFor[map[string]list](), false})), "a type may contain itself")
}

func TestKeysOfMaps(t *testing.T) {
	type maps struct {
		Ints  map[int8]int          `json:"ints"`
		Addrs map[netip.Addr]int    `json:"addrs"`
		Took  map[time.Duration]int `json:"took"`
		Times map[time.Time]int     `json:"times"`
		Bytes map[[2]byte]int       `json:"bytes"`
		Any   map[any]int           `json:"any"`
	}
	got := value(JSON[maps](newContext(t, postJSON(`{"ints":{"-1":1},"addrs":{"::1":1},"took":{"7":1},
		"times":{"2026-01-02T03:04:05Z":1},"bytes":{"AQI=":1},"any":{"a":1}}`), Options{})))
	require.Equal(t, maps{
		Ints: map[int8]int{-1: 1}, Addrs: map[netip.Addr]int{netip.IPv6Loopback(): 1}, Took: map[time.Duration]int{7: 1},
		Times: map[time.Time]int{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC): 1},
		Bytes: map[[2]byte]int{{1, 2}: 1}, Any: map[any]int{"a": 1},
	}, got)
}
