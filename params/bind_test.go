package params

import (
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

// Page is a group of fields. Structs of these tests embed it or have a field of this type.
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
	got := value(Bind[search](newContext(t, r, Options{})))
	seven := 7
	require.Equal(t, search{
		Page: Page{Number: 1, Size: 50}, Shelf: 12, Words: "go lang", Exact: true, Tags: []string{"a", "b"}, Years: []uint16{1, 2},
		Price: 1.5, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Wait: 90 * time.Second,
		From: netip.MustParseAddr("192.0.2.1"), Hosts: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("192.0.2.7")},
		Limit: &seven, Near: address{"Paris", "75001"}, Far: &address{City: "Rome"}, Opt: Some(0),
		Client: "c1", Accept: []string{"a", "b"}, Host: "example.com", Theme: "dark",
	}, got)
	require.Empty(t, got.hidden)
	require.True(t, got.Ordered.IsZero())
}

// paging is a group of fields that also has a decoding method.
type paging struct {
	Number int `query:"page" max:"100" required:"true"`
}

func (*paging) UnmarshalJSON([]byte) error { return nil }

func TestBindOfAnEmbeddedGroupThatDecodesItself(t *testing.T) {
	type list struct {
		paging
		Words string `query:"q"`
	}
	got := value(Bind[list](newContext(t, getRequest("q=go&page=3"), Options{})))
	require.Equal(t, list{paging{3}, "go"}, got)
	for query, want := range map[string]error{"q=go": ErrMissing, "page=101": ErrInvalid} {
		require.ErrorIs(t, failure(Bind[list](newContext(t, getRequest(query), Options{}))), want)
	}
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
		form.Set(fmt.Sprintf("items.%d.name", i*3), name) // Encode writes item 12 before item 3
	}
	form.Set("items.6.price", "2.5")
	form["items.6.tag"] = []string{"x", "y"}
	form.Set("items.9.sub.70.name", "inner")
	got := value(Bind[order](newContext(t, postForm("/", form.Encode()), Options{})))
	require.Equal(t, "hi", got.Note)
	require.Equal(t, formAddress{City: "Rome"}, got.Bill)
	require.Equal(t, &formAddress{City: "Oslo"}, got.Ship)
	require.Len(t, got.Items, 12, "the numbers only give the order")
	for i := range got.Items {
		require.Equal(t, string(rune('a'+i)), got.Items[i].Name)
	}
	require.Equal(t, item{Name: "c", Price: 2.5, Tags: []string{"x", "y"}}, got.Items[2])
	require.Equal(t, []item{{Name: "inner"}}, got.Items[3].Sub)

	list := errorsOf(t, failure(Bind[order](newContext(t, postForm("/", "bill.city=Rome&ship.zip=1&items.3.price=1&items.03.name=x&items.3.name=a&items.4.price=1&items.4.price=2&items.4.sub.1.price=x"), Options{}))))
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

func TestBudgetOfPairs(t *testing.T) {
	type node struct {
		C []node   `query:"c"`
		V []string `query:"v"`
	}
	bind := func(o Options, query string) error {
		_, err := Bind[node](newContext(t, getRequest(query), o))
		return err
	}
	const deep, many = "c.1.c.1.v=x", "v=x&v=y&c.1.v=z" // names that lead through 2 structs; 2 + 1 + 1 elements
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
	list := errorsOf(t, failure(Bind[both](newContext(t, r, Options{}))))
	require.Len(t, list, 2)

	r = postForm("/?q=x", "j=1")
	list = errorsOf(t, failure(Bind[both](newContext(t, r, Options{}))))
	status, members := list.Problem()
	require.Equal(t, 415, status)
	require.Equal(t, []string{jsonType}, members["accepted"])

	r = getRequest("")
	r.Header["X"], r.Header["Y"] = []string{"a\xff"}, []string{"1", "2"}
	r.Header.Set("Cookie", "c=1; c=2")
	_, err := Bind[struct {
		X string `header:"X"`
		Y string `header:"Y"`
		C string `cookie:"c"`
	}](newContext(t, r, Options{}))
	list = errorsOf(t, err)
	require.Len(t, list, 3)
	require.Equal(t, "params: header parameter \"X\" is not valid UTF-8; header parameter \"Y\" is given 2 times; cookie parameter \"c\" is given 2 times", err.Error())
}

func TestBindOfEmptyBody(t *testing.T) {
	type doc struct {
		A int `json:"a" default:"3"`
		B int `json:"b"`
	}
	for _, r := range []*http.Request{getRequest(""), postJSON(""), postJSON(" "), postJSON("{}")} {
		require.Equal(t, doc{A: 3}, value(Bind[doc](newContext(t, r, Options{}))))
	}
	requireReason(t, failure(Bind[doc](newContext(t, postJSON("null"), Options{}))), ErrMalformed, "the request body must be an object, not null")
	type must struct {
		A Opt[int] `json:"a" required:"true"`
	}
	for _, doc := range []string{"", "{}"} {
		e := requireReason(t, failure(Bind[must](newContext(t, postJSON(doc), Options{}))), ErrMissing, `json parameter "a" is missing`)
		require.Equal(t, "#/a", e.Pointer())
	}
	_, err := Bind[must](newContext(t, postJSON(`{"a":null}`), Options{}))
	require.Equal(t, "must not be null", requireReason(t, err, ErrMalformed, `json parameter "a"`).Detail)
}
