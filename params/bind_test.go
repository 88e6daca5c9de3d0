package params

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Page is a group: embedded here, and by name elsewhere.
type Page struct {
	Number int `query:"page" default:"1"`
	Size   int `query:"size" default:"20"`
}

type address struct {
	City string `query:"city"`
	Zip  string `query:"zip"`
}

type formAddress struct {
	City string `form:"city" required:"true"`
	Zip  string `form:"zip"`
}

type search struct {
	Page
	Shelf   int           `path:"shelf"`
	Words   string        `query:"q" required:"true"`
	Exact   bool          `query:"exact"`
	Tags    []string      `query:"tag"`
	Years   []uint16      `query:"year"`
	Price   float32       `query:"price"`
	Since   time.Time     `query:"since"`
	Wait    time.Duration `query:"wait"`
	From    netip.Addr    `query:"from"`
	Hosts   []netip.Addr  `query:"host"`
	Limit   *int          `query:"limit"`
	Near    address       `query:"near"`
	Far     *address      `query:"far"`
	Opt     Opt[int]      `query:"opt"`
	Client  string        `header:"x-client-id"`
	Accept  []string      `header:"Accept"`
	Host    string        `header:"Host"`
	Theme   string        `cookie:"theme" default:"light"`
	Owner   string        `params:"-"`
	hidden  string
	Ordered Opt[string] `query:"order"`
}

func TestBindOfEverySource(t *testing.T) {
	r := getRequest("q=go+lang&exact=on&tag=a&year=1&tag=b&year=2&price=1.5&since=2026-01-02T03:04:05Z&wait=1m30s" +
		"&from=192.0.2.1&host=::1&host=192.0.2.7&limit=7&near.city=Paris&near.zip=75001&far.city=Rome&size=50&opt=0&utm=x")
	r.SetPathValue("shelf", "12")
	r.Header.Set("X-Client-Id", "c1")
	r.Header["Accept"] = []string{"a", "b"}
	r.AddCookie(&http.Cookie{Name: "theme", Value: "dark"})
	got, err := Bind[search](newContext(t, r, Options{}))
	require.NoError(t, err)
	seven := 7
	require.Equal(t, search{
		Page: Page{Number: 1, Size: 50}, Shelf: 12, Words: "go lang", Exact: true, Tags: []string{"a", "b"}, Years: []uint16{1, 2},
		Price: 1.5, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Wait: 90 * time.Second,
		From: netip.MustParseAddr("192.0.2.1"), Hosts: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("192.0.2.7")},
		Limit: &seven, Near: address{"Paris", "75001"}, Far: &address{City: "Rome"}, Opt: Some(0),
		Client: "c1", Accept: []string{"a", "b"}, Host: "example.com", Theme: "dark",
	}, got)
	require.Empty(t, got.hidden)
	require.True(t, got.Ordered.IsAbsent())
}

func TestBindReadsOnlyWhatItNeeds(t *testing.T) {
	r := postForm("/?q=1", "%zz")
	body := watch(r)
	_, err := Bind[struct {
		Q int `query:"q"`
	}](newContext(t, r, Options{}))
	require.NoError(t, err)
	require.Zero(t, body.reads)

	r = getRequest("%zz")
	_, err = Bind[struct {
		Client string `header:"X-Client"`
	}](newContext(t, r, Options{}))
	require.NoError(t, err, "the query has nothing to do with it")
}

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
	var list Errors
	require.ErrorAs(t, err, &list)
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
		"json|lines.1.price|#/lines/1/price|must be a whole number, not a string",
		"json|lines.2.price|#/lines/2/price|is missing",
		"json|name|#/name|is missing",
	}, details)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorIs(t, err, ErrMalformed)
	status, members := list.Problem()
	require.Equal(t, 400, status)
	require.Equal(t, "10 parameters are invalid", members["detail"])
	items := members["errors"].([]map[string]string)
	require.Equal(t, map[string]string{"source": "query", "parameter": "size", "detail": "must be a whole number"}, items[3])
	require.Equal(t, map[string]string{"source": "json", "pointer": "#/lines/2/price", "detail": "is missing"}, items[8])
}

func TestOneErrorIsItself(t *testing.T) {
	_, err := Bind[search](newContext(t, getRequest(""), Options{}))
	e, ok := err.(*Error)
	require.True(t, ok, "%T", err)
	require.Equal(t, "q", e.Name)
}

func TestNumberOfErrorsIsBounded(t *testing.T) {
	type numbers struct {
		N []int `query:"n"`
	}
	_, err := Bind[numbers](newContext(t, getRequest("n=x"+strings.Repeat("&n=x", 500)), Options{}))
	var list Errors
	require.ErrorAs(t, err, &list)
	require.Len(t, list, maxErrors)

	type doc struct {
		N []int `json:"n"`
	}
	_, err = Bind[doc](newContext(t, postJSON(`{"n":["x"`+strings.Repeat(`,"x"`, 500)+`]}`), Options{}))
	require.ErrorAs(t, err, &list)
	require.Len(t, list, maxErrors)
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

func TestBindOfForm(t *testing.T) {
	type item struct {
		Name  string   `form:"name" required:"true"`
		Price float64  `form:"price"`
		Tags  []string `form:"tag"`
		Sub   []item   `form:"sub"`
	}
	type order struct {
		Note  string       `form:"note"`
		Items []item       `form:"items"`
		Ship  *formAddress `form:"ship"`
		Bill  formAddress  `form:"bill"`
	}
	form := url.Values{"note": {"hi"}, "bill.city": {"Rome"}, "ship.city": {"Oslo"}}
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		form.Set(fmt.Sprintf("items.%d.name", i*3), name) // Encode sorts 12 before 3
	}
	form.Set("items.6.price", "2.5")
	form["items.6.tag"] = []string{"x", "y"}
	form.Set("items.9.sub.70.name", "inner")
	got, err := Bind[order](newContext(t, postForm("/", form.Encode()), Options{}))
	require.NoError(t, err)
	require.Equal(t, "hi", got.Note)
	require.Equal(t, formAddress{City: "Rome"}, got.Bill)
	require.Equal(t, &formAddress{City: "Oslo"}, got.Ship)
	require.Len(t, got.Items, 12, "numbers order, and gaps are closed")
	for i := range got.Items {
		require.Equal(t, string(rune('a'+i)), got.Items[i].Name)
	}
	require.Equal(t, item{Name: "c", Price: 2.5, Tags: []string{"x", "y"}}, got.Items[2])
	require.Equal(t, []item{{Name: "inner"}}, got.Items[3].Sub)

	_, err = Bind[order](newContext(t, postForm("/", "bill.city=Rome&ship.zip=1&items.3.price=1&items.03.name=x&items.3.name=a&items.4.price=1&items.4.price=2&items.4.sub.1.price=x"), Options{}))
	var list Errors
	require.ErrorAs(t, err, &list)
	var details []string
	for _, e := range list {
		details = append(details, e.Error())
	}
	require.ElementsMatch(t, []string{
		`params: form parameter "ship.city" is missing`,
		`params: form parameter "items.4.name" is missing`,
		`params: form parameter "items.4.price" is given 2 times`,
		`params: form parameter "items.4.sub.1.name" is missing`,
		`params: form parameter "items.4.sub.1.price" must be a number`,
	}, details)
}

func TestUnknownParameters(t *testing.T) {
	type form struct {
		A     int         `form:"a"`
		Photo *File       `form:"photo"`
		Ship  formAddress `form:"ship"`
	}
	strict := Options{DisallowUnknownFields: true}
	_, err := Bind[form](newContext(t, postForm("/?q=1", "a=1&photo=x.png&ship.city=Rome"), strict))
	require.NoError(t, err, "the query isn't bound")
	for _, name := range []string{"b", "ship.street", "ship", "ship.city.x", ""} {
		_, err := Bind[form](newContext(t, postForm("/", "ship.city=Rome&"+name+"=1"), strict))
		e := requireReason(t, err, ErrMalformed, "is unknown")
		require.Equal(t, name, e.Name)
		_, err = Bind[form](newContext(t, postForm("/", "ship.city=Rome&"+name+"=1"), Options{}))
		require.NoError(t, err)
	}
}

func TestBudgetOfPairs(t *testing.T) {
	type node struct {
		C []node   `query:"c"`
		V []string `query:"v"`
	}
	bind := func(o Options, query string) error {
		_, err := Bind[node](newContext(t, getRequest(query), o))
		return err
	}
	const deep, many = "c.1.c.1.v=x", "v=x&v=y&c.1.v=z" // 2 structs deep; 2 + 1 + 1 elements
	require.NoError(t, bind(Options{MaxDepth: 2}, deep))
	requireReason(t, bind(Options{MaxDepth: 1}, deep), ErrTooLarge, "has names more than 1 deep")
	require.NoError(t, bind(Options{MaxElements: 4}, many))
	requireReason(t, bind(Options{MaxElements: 3}, many), ErrTooLarge, "has more than 3 elements")
}

func TestBindOfFaultySources(t *testing.T) {
	type both struct {
		Q int `query:"q"`
		J int `json:"j"`
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"j":`))
	r.URL.RawQuery = "q=%zz"
	r.Header.Set("Content-Type", jsonType)
	_, err := Bind[both](newContext(t, r, Options{}))
	var list Errors
	require.ErrorAs(t, err, &list)
	require.Len(t, list, 2)

	r = postForm("/?q=x", "j=1")
	_, err = Bind[both](newContext(t, r, Options{}))
	require.ErrorAs(t, err, &list)
	status, members := list.Problem()
	require.Equal(t, 415, status)
	require.Equal(t, []string{jsonType}, members["accepted"])

	r = getRequest("")
	r.Header["X"], r.Header["Y"] = []string{"a\xff"}, []string{"1", "2"}
	r.Header.Set("Cookie", "c=1; c=2")
	_, err = Bind[struct {
		X string `header:"X"`
		Y string `header:"Y"`
		C string `cookie:"c"`
	}](newContext(t, r, Options{}))
	require.ErrorAs(t, err, &list)
	require.Len(t, list, 3)
	require.Equal(t, "params: header parameter \"X\" is not valid UTF-8; header parameter \"Y\" is given 2 times; cookie parameter \"c\" is given 2 times", err.Error())
}

func TestBindOfEmptyBody(t *testing.T) {
	type doc struct {
		A int `json:"a" default:"3"`
		B int `json:"b"`
	}
	for _, r := range []*http.Request{getRequest(""), postJSON(""), postJSON(" "), postJSON("{}")} {
		got, err := Bind[doc](newContext(t, r, Options{}))
		require.NoError(t, err)
		require.Equal(t, doc{A: 3}, got)
	}
	_, err := Bind[doc](newContext(t, postJSON("null"), Options{}))
	requireReason(t, err, ErrMalformed, "the request body must be an object, not null")
	type must struct {
		A Opt[int] `json:"a" required:"true"`
	}
	for _, doc := range []string{"", "{}"} {
		_, err = Bind[must](newContext(t, postJSON(doc), Options{}))
		e := requireReason(t, err, ErrMissing, `json parameter "a" is missing`)
		require.Equal(t, "#/a", e.Pointer())
	}
	_, err = Bind[must](newContext(t, postJSON(`{"a":null}`), Options{}))
	require.Equal(t, "must not be null", requireReason(t, err, ErrMalformed, `json parameter "a"`).Detail)
}

type shipping struct {
	City string `json:"city" form:"city" required:"true"`
	Days int    `json:"days" form:"days" default:"3"`
	To   struct {
		Name string `json:"name" form:"name" required:"true"`
	} `json:"to" form:"to"`
}

// An absent struct is as one without anything in it, in JSON as in a form.
func TestAbsentStruct(t *testing.T) {
	type inJSON struct {
		Ship shipping `json:"ship"`
	}
	type inForm struct {
		Ship shipping `form:"ship"`
	}
	missing := func(err error) (names []string) {
		var list Errors
		require.ErrorAs(t, err, &list)
		for _, e := range list {
			require.ErrorIs(t, e, ErrMissing)
			require.Equal(t, e.Source == SourceJSON, e.Pointer() == "#/"+strings.ReplaceAll(e.Name, ".", "/"))
			names = append(names, e.Name)
		}
		return names
	}
	for _, doc := range []string{``, `{}`, `{"ship":null}`, `{"ship":{}}`, `{"ship":{"to":null}}`} {
		_, err := Bind[inJSON](newContext(t, postJSON(doc), Options{}))
		require.ElementsMatch(t, []string{"ship.city", "ship.to.name"}, missing(err), doc)
	}
	for _, form := range []string{"", "ship=x&to.name=x"} {
		_, err := Bind[inForm](newContext(t, postForm("/", form), Options{}))
		require.ElementsMatch(t, []string{"ship.city", "ship.to.name"}, missing(err), form)
	}
	_, err := JSON[shipping](newContext(t, postJSON(`null`), Options{}))
	require.Equal(t, []string{"city", "to.name"}, missing(err))
	_, err = JSON[[]shipping](newContext(t, postJSON(`[null,{"city":"Rome"}]`), Options{}))
	require.Equal(t, []string{"0.city", "0.to.name", "1.to.name"}, missing(err))
	_, err = JSON[struct {
		Ship shipping `json:"ship" required:"true"`
	}](newContext(t, postJSON(`{}`), Options{}))
	require.Equal(t, "ship", requireReason(t, err, ErrMissing, "is missing").Name)

	type page struct {
		In struct {
			Size int `json:"size" form:"size" default:"20"`
			More struct {
				On Opt[bool] `json:"on" form:"on" default:"true"`
			} `json:"more" form:"more"`
		} `json:"in" form:"in"`
	}
	for _, doc := range []string{`{}`, `{"in":null}`, `{"in":{"more":{}}}`} {
		got, err := JSON[page](newContext(t, postJSON(doc), Options{}))
		require.NoError(t, err)
		require.Equal(t, 20, got.In.Size)
		require.Equal(t, Some(true), got.In.More.On)
	}
}

// What a pointer or an Opt leads to is demanded only if it is given.
func TestAbsentPointerToAStruct(t *testing.T) {
	type inJSON struct {
		Ship *shipping     `json:"ship"`
		Opt  Opt[shipping] `json:"opt"`
	}
	type inForm struct {
		Ship *shipping `form:"ship"`
	}
	for _, doc := range []string{``, `{}`, `{"ship":null}`} {
		got, err := Bind[inJSON](newContext(t, postJSON(doc), Options{}))
		require.NoError(t, err)
		require.Equal(t, inJSON{}, got)
	}
	form, err := Bind[inForm](newContext(t, postForm("/", ""), Options{}))
	require.NoError(t, err)
	require.Nil(t, form.Ship)
	for _, doc := range []string{`{"ship":{"to":{"name":"x"}}}`, `{"opt":{"to":{"name":"x"}}}`} {
		_, err = Bind[inJSON](newContext(t, postJSON(doc), Options{}))
		require.Contains(t, requireReason(t, err, ErrMissing, "is missing").Name, ".city")
	}
	_, err = Bind[inForm](newContext(t, postForm("/", "ship.to.name=x"), Options{}))
	require.Equal(t, "ship.city", requireReason(t, err, ErrMissing, "is missing").Name)
}

func TestMistakesInTheType(t *testing.T) {
	type twoSources struct {
		A int `query:"a" form:"a"`
	}
	type noSource struct {
		A int
	}
	type bodies struct {
		A int `form:"a"`
		B int `json:"b"`
	}
	type inner struct {
		X int `json:"x"`
	}
	type sameName struct {
		X     int `json:"x"`
		Group inner
	}
	for want, bind := range map[string]func(*Params) error{
		"Bind of a int: it is not a struct":                   try[int],
		`A: names two sources, query and form`:                try[twoSources],
		`A: has no tag of a source; params:"-" leaves it out`: try[noSource],
		"but a body cannot be both":                           try[bodies],
		"A: is not exported": try[struct {
			a int `query:"a"`
		}],
		"A: a text cannot become a map[string]int": try[struct {
			A map[string]int `query:"a"`
		}],
		"a text cannot become bytes": try[struct {
			A []byte `query:"a"`
		}],
		"a path has no list of values": try[struct {
			A []int `path:"a"`
		}],
		`the default "x" must be a whole number`: try[struct {
			A int `query:"a" default:"x"`
		}],
		"a required field needs no default": try[struct {
			A int `query:"a" required:"true" default:"1"`
		}],
		"A: a required field needs no default": try[struct {
			A int `json:"a" required:"true" default:"1"`
		}],
		`has a comma in the tag "a,required"`: try[struct {
			A int `query:"a,required"`
		}],
		`has the tag required with "yes", want true`: try[struct {
			A int `json:"a" required:"yes"`
		}],
		"a tag without a name": try[struct {
			A int `query:""`
		}],
		`the query parameter "a" has a field already`: try[struct {
			A, B int `query:"a"`
		}],
		`conflict over JSON object name "x"`: try[sameName],
		"a *int can't have a default": try[struct {
			A *int `query:"a" default:"1"`
		}],
		"A: X: has no tag query": try[struct {
			A inner `query:"a"`
		}],
		"a struct can't be required or have a default": try[struct {
			A address `query:"a" required:"true"`
		}],
		"a text cannot become a params.Opt[": try[struct {
			A Opt[address] `query:"a"`
		}],
		"a text cannot become a []params.Opt[": try[struct {
			A []Opt[address] `query:"a"`
		}],
		"a file is a field of a form": try[struct {
			A *File `query:"a"`
		}],
		"a text cannot become a params.inner": try[struct {
			A inner `header:"a"`
		}],
		"beside fields that are embedded by pointer": try[struct {
			A struct {
				B int `json:"b,string" default:"1"`
			} `json:"a"`
		}],
	} {
		for range 2 {
			err := bind(paramsOf(t, postJSON("{}"), Options{}))
			require.Error(t, err, want)
			require.Contains(t, strings.ToLower(err.Error()), strings.ToLower(want))
			var e *Error
			require.False(t, errors.As(err, &e), "not the client's")
		}
	}
}

func try[T any](p *Params) error { _, err := Bind[T](p.ctx); return err }

func TestBindWithoutRequest(t *testing.T) {
	_, err := Bind[search](t.Context())
	require.Error(t, err)
}

func TestDefaultsAreNotShared(t *testing.T) {
	type with struct {
		At time.Time `query:"at" default:"2026-01-02T03:04:05Z"`
		On bool      `query:"on" default:"true"`
		In Opt[int]  `query:"in" default:"7"`
	}
	for range 2 {
		got, err := Bind[with](newContext(t, getRequest(""), Options{}))
		require.NoError(t, err)
		require.Equal(t, 2026, got.At.Year())
		require.True(t, got.On)
		require.Equal(t, Some(7), got.In)
		got.In = Some(8)
	}
	got, err := Bind[with](newContext(t, getRequest("on=off&in=1"), Options{}))
	require.NoError(t, err)
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
		"i8=128": "is out of range", "i8=-129": "is out of range", "i8=1.0": "must be a whole number", "i8=": "must be a whole number",
		"u8=256": "is out of range", "u8=-1": "is out of range", "u8=x": "must be a whole number",
		"f32=1e39": "is out of range", "f32=0x1p-2": "must be a number", "f32=Inf": "must be a number", "f32=1_0": "must be a number",
		"b=yes": "must be true or false", "t=2026": "must be an RFC 3339 time", "d=5": "must be a duration", "d=x": "must be a duration",
		"a=300.1.1.1": "has a value that can't be decoded", "p=x": "must be a whole number", "o=-1": "is out of range",
		"i8=9999999999999999999999": "is out of range",
	} {
		_, err := Bind[texts](newContext(t, getRequest(query), Options{}))
		requireReason(t, err, ErrMalformed, want)
	}
	_, err := Bind[texts](newContext(t, getRequest("a=300.1.1.1"), Options{}))
	require.NotContains(t, err.Error(), "ParseAddr", "a type's own words stay inside")
}

// What is no RFC 3339 time, and no number or duration, in a text isn't one in JSON either.
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
		_, fault := parseTime(text)
		require.Equal(t, wantTime, fault, text)
		_, err := JSON[times](newContext(t, postJSON(`{"t":"`+text+`"}`), Options{}))
		requireReason(t, err, ErrMalformed, wantTime)
		_, err = paramsOf(t, postJSON(`{"t":"`+text+`"}`), Options{}).Time("t")
		requireReason(t, err, ErrMalformed, wantTime)
	}
	for _, text := range []string{
		"2026-01-02T03:04:05+23:59", "2026-01-02T03:04:05-23:59", "2026-01-02T03:04:05-00:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2024-02-29T00:00:00.1234567891+01:00",
	} {
		at, fault := parseTime(text)
		require.Empty(t, fault, text)
		got, err := JSON[times](newContext(t, postJSON(`{"t":"`+text+`"}`), Options{}))
		require.NoError(t, err)
		require.True(t, at.Equal(got.T))
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
		_, err := paramsOf(t, getRequest(url.Values{"i": {text}}.Encode()), Options{}).Int("i")
		require.ErrorIs(t, err, ErrMalformed, "%q", text)
	}
	for _, text := range floats {
		_, err := paramsOf(t, getRequest(url.Values{"f": {text}}.Encode()), Options{}).Float("f")
		require.ErrorIs(t, err, ErrMalformed, "%q", text)
	}
	got, err := Bind[values](newContext(t, getRequest("i=-007&i8=-128&u=0&f=-1e%2B3&d=-1.5h3m2us"), Options{}))
	require.NoError(t, err)
	require.Equal(t, values{-7, -128, 0, -1000, -(93*time.Minute + 2*time.Microsecond)}, got)
}
