package params

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func day(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
}

func TestLayoutInEverySource(t *testing.T) {
	type dates struct {
		Path    time.Time        `path:"day" layout:"2006-01-02"`
		Header  *time.Time       `header:"X-Day" layout:"Mon, 02 Jan 2006 15:04:05 GMT"`
		Headers []time.Time      `header:"X-Days" layout:"2006-01-02"`
		Cookie  time.Time        `cookie:"day" layout:"20060102"`
		Query   time.Time        `query:"day" layout:"02.01.2006"`
		List    []time.Time      `query:"days" layout:"2006-01-02" max:"2"`
		Pointer []*time.Time     `query:"pointers" layout:"2006-01-02"`
		Opt     Opt[time.Time]   `query:"opt" layout:"2006-01-02T15:04"`
		Opts    []Opt[time.Time] `query:"opts" layout:"2006-01"`
		Absent  Opt[time.Time]   `query:"absent" layout:"2006-01-02"`
		Default time.Time        `query:"default" layout:"2006-01-02" default:"2026-07-08"`
		Inner   struct {
			Form *time.Time `form:"day" layout:"2006-01-02"`
		} `form:"inner"`
		RFC3339 time.Time `query:"exact"`
	}
	r := postForm("/?day=03.02.2026&days=2026-01-01&days=2026-01-02&pointers=2026-01-03&opt=2026-01-04T05:06&opts=2026-03&exact=2026-01-02T00:00:00Z",
		"inner.day=2026-05-06")
	r.SetPathValue("day", "2026-01-31")
	r.Header.Set("X-Day", "Sat, 31 Jan 2026 07:08:09 GMT")
	r.Header["X-Days"] = []string{"2026-01-01", "2026-12-31"}
	r.AddCookie(&http.Cookie{Name: "day", Value: "20260228"})
	got, err := Bind[dates](newContext(t, r, Options{}))
	require.NoError(t, err)
	at, first, form := day(1, 31).Add(7*time.Hour+8*time.Minute+9*time.Second), day(1, 3), day(5, 6)
	want := dates{
		Path: day(1, 31), Header: &at, Headers: []time.Time{day(1, 1), day(12, 31)}, Cookie: day(2, 28),
		Query: day(2, 3), List: []time.Time{day(1, 1), day(1, 2)}, Pointer: []*time.Time{&first},
		Opt: Some(day(1, 4).Add(5*time.Hour + 6*time.Minute)), Opts: []Opt[time.Time]{Some(day(3, 1))},
		Default: day(7, 8), RFC3339: day(1, 2),
	}
	want.Inner.Form = &form
	require.Equal(t, want, got)
}

func TestDatesThatDoNotFitTheLayout(t *testing.T) {
	type dates struct {
		Day  time.Time   `query:"day" layout:"2006-01-02"`
		Days []time.Time `query:"days" layout:"2006-01-02"`
	}
	for _, text := range []string{
		"", "2026-02-29", "2026-13-01", "2026-1-2", "26-01-02", "02.01.2026", "2026-01-02T03:04:05Z", "2026-01-02 ", " 2026-01-02",
		"2026-01-00", "2026/01/02", "10000-01-01", "-2026-01-02", "２026-01-02", "today", "YYYY-MM-DD",
	} {
		for _, name := range []string{"day", "days"} {
			query := "days=2026-01-01&" + url.Values{name: {text}}.Encode()
			e := requireReason(t, failure(Bind[dates](newContext(t, getRequest(query), Options{}))), ErrMalformed, "must have the form 2006-01-02")
			require.Equal(t, name, e.Name, text)
		}
	}
	e := requireReason(t, failure(Bind[dates](newContext(t, getRequest("day=2026-01-01&day=2026-01-02"), Options{}))), ErrMalformed, "is given 2 times")
	require.Equal(t, "day", e.Name)
}

func TestMistakesInLayouts(t *testing.T) {
	when := reflect.TypeFor[time.Time]()
	for _, tt := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{when, `query:"v" layout:""`, `V: has the tag layout with "", want a layout of package time, such as 2006-01-02`},
		{when, `query:"v" layout:"YYYY-MM-DD"`, "has the tag layout with"},
		{when, `form:"v" layout:"%Y-%m-%d"`, "has the tag layout with"},
		{when, `path:"v" layout:"Monday"`, "has the tag layout with"},
		{when, `header:"v" layout:"2006-01-02 03:04"`, "has the tag layout with"},
		{when, `header:"v" layout:"PM"`, "has the tag layout with"},
		{when, `query:"v" layout:"2006-01-02" default:"01.02.2026"`, `the default "01.02.2026" must have the form 2006-01-02`},
		{when, `query:"v" layout:"2006-01-02" default:"2026-02-29"`, `the default "2026-02-29" must have the form 2006-01-02`},
		{when, `json:"v" layout:"2006-01-02"`, "a time in JSON can't have the tag layout"},
		{reflect.TypeFor[time.Duration](), `header:"v" layout:"2006-01-02"`, "a time.Duration can't have the tag layout"},
		{reflect.TypeFor[string](), `query:"v" layout:"2006-01-02"`, "a string can't have the tag layout"},
		{reflect.TypeFor[[]int](), `query:"v" layout:"2006-01-02"`, "a []int can't have the tag layout"},
		{reflect.TypeFor[Page](), `layout:"2006-01-02"`, "can't be required, have a default or a layout"},
	} {
		v := reflect.New(structWith(tt.typ, tt.tag)).Elem()
		requireMistake(t, paramsOf(t, httptest.NewRequest("GET", "/", nil), Options{}).bind(v), tt.want)
	}
	type doc struct {
		Days []time.Time `json:"days" layout:"2006-01-02"`
	}
	requireMistake(t, tryJSON[doc](paramsOf(t, postJSON("{}"), Options{})), "a time in JSON can't have the tag layout")
}

// TestLayoutsOfPackageTime checks that layouts are accepted even if they have only a part of a time.
func TestLayoutsOfPackageTime(t *testing.T) {
	for _, layout := range []string{
		time.Layout, time.ANSIC, time.UnixDate, time.RFC822Z, time.RFC850, time.RFC1123, time.RFC3339Nano, time.DateTime, time.DateOnly,
		time.TimeOnly, time.Kitchen, time.StampMicro, http.TimeFormat, "2006-01", "2006", "2006-002", "January 2, 06", "15h", "_2.1.2006",
	} {
		require.True(t, isLayout(layout), layout)
	}
	for _, layout := range []string{"", "date", "YYYY-MM-DD", "Monday", "PM", ".000", "2006-01-02 3h"} {
		require.False(t, isLayout(layout), layout)
	}
}
