package params

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBindCollectsAllErrors(t *testing.T) {
	type order struct {
		Shelf  uint8   `path:"shelf"`
		Size   int     `query:"size"`
		Page   int     `query:"page"`
		Words  string  `query:"q" required:"true"`
		Rate   float64 `query:"rate"`
		Secret string  `header:"X-Secret" required:"true"`
		Theme  int     `cookie:"theme"`
		Name   string  `json:"name" required:"true"`
		Lines  []struct {
			Price int `json:"price" required:"true"`
		} `json:"lines"`
	}
	r := httptest.NewRequest("POST", "/?size=x&page=1&page=2&rate=NaN", strings.NewReader(`{"lines":[{"price":1},{"price":"1"},{"pri/ce":1}]}`))
	r.Header.Set("Content-Type", jsonType)
	r.SetPathValue("shelf", "256")
	r.AddCookie(&http.Cookie{Name: "theme", Value: "dark"})
	got, err := Bind[order](newContext(t, r, Options{}))
	require.Equal(t, order{}, got)
	list := errorsOf(t, err)
	var details []string
	for _, e := range list {
		details = append(details, fmt.Sprintf("%s|%s|%s|%s", e.Source, e.Name, e.Pointer(), e.Detail))
	}
	require.Equal(t, []string{
		"path|shelf||is out of range",
		"header|X-Secret||is missing",
		"cookie|theme||must be a whole number",
		"query|size||must be a whole number",
		"query|page||is given 2 times",
		"query|q||is missing",
		"query|rate||must be a number",
		"json|name|#/name|is missing",
		"json|lines.1.price|#/lines/1/price|must be a whole number, not a string",
		"json|lines.2.price|#/lines/2/price|is missing",
	}, details)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorIs(t, err, ErrMalformed)
	status, members := list.Problem()
	require.Equal(t, 400, status)
	require.Equal(t, "10 parameters are invalid", members["detail"])
	items := members["errors"].([]map[string]string)
	require.Equal(t, map[string]string{"source": "query", "parameter": "size", "detail": "must be a whole number"}, items[3])
	require.Equal(t, map[string]string{"source": "json", "pointer": "#/lines/2/price", "detail": "is missing"}, items[9])
}

func TestNumberOfErrorsIsBounded(t *testing.T) {
	type numbers struct {
		N []int `query:"n"`
	}
	list := errorsOf(t, failure(Bind[numbers](newContext(t, getRequest("n=x"+strings.Repeat("&n=x", 500)), Options{}))))
	require.Len(t, list, maxErrors)

	type doc struct {
		N []int `json:"n"`
	}
	list = errorsOf(t, failure(Bind[doc](newContext(t, postJSON(`{"n":["x"`+strings.Repeat(`,"x"`, 500)+`]}`), Options{}))))
	require.Len(t, list, maxErrors)
}

// The path of a mistake costs time for each level of the value. TestWorkAfterTheLastErrorIsBounded checks that no paths are
// made for mistakes that are not reported.
func TestWorkAfterTheLastErrorIsBounded(t *testing.T) {
	const elements = 4000
	doc := strings.Repeat(`{"c":[`, 30) + `{"x":"1"}` + strings.Repeat(`,{"x":"1"}`, elements-1) + strings.Repeat("]}", 30)
	p := paramsOf(t, postJSON(doc), Options{})
	allocs := testing.AllocsPerRun(1, func() { require.Len(t, errorsOf(t, p.DecodeJSON(new(deep))), maxErrors) })
	require.Less(t, allocs, 20.0*elements)
}

func TestStatusOfSeveralErrors(t *testing.T) {
	bad := malformedError(SourceQuery, "q", "is bad")
	invalid := &Error{Name: "n", Source: SourceQuery, Reason: ErrInvalid}
	unsupported := &Error{Source: SourceBody, Reason: ErrUnsupported, accepted: []string{jsonType}}
	large := &Error{Source: SourceBody, Reason: ErrTooLarge}
	for want, list := range map[int]Errors{
		422: {invalid, invalid},
		400: {invalid, bad, invalid},
		415: {invalid, bad, unsupported, large},
		413: {large, unsupported},
	} {
		status, members := list.Problem()
		require.Equal(t, want, status)
		require.Equal(t, want == 415 || want == 413, members["accepted"] != nil)
	}
}
