package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// TestDatesWithALayout binds dates from every source over HTTP. A date in another form is a 400 that shows the form, and a
// layout that is not one is a 500 that is logged.
func TestDatesWithALayout(t *testing.T) {
	type booking struct {
		Month  time.Time   `path:"month" layout:"2006-01"`
		Day    *time.Time  `query:"day" layout:"02.01.2006"`
		Since  time.Time   `header:"If-Modified-Since" layout:"Mon, 02 Jan 2006 15:04:05 GMT"`
		Nights []time.Time `form:"night" layout:"2006-01-02" max:"2"`
	}
	type mistake struct {
		Day time.Time `query:"day" layout:"yyyy-mm-dd"`
	}
	got := make(chan booking, 1)
	srv, l := newServer(t, server.Options{})
	srv.HandleFunc("POST /{month}", func(_ http.ResponseWriter, req *server.Request) error {
		b, err := params.Bind[booking](req)
		got <- b
		return err
	})
	srv.HandleFunc("GET /mistake", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := params.Bind[mistake](req)
		return err
	})
	at, c := listenItself(t, srv)
	post := func(target, since string, nights ...string) answer {
		r, err := http.NewRequestWithContext(t.Context(), "POST", at+target, strings.NewReader(url.Values{"night": nights}.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("If-Modified-Since", since)
		res, err := do(c, r)
		require.NoError(t, err)
		return res
	}
	day := func(month time.Month, day int) time.Time { return time.Date(2028, month, day, 0, 0, 0, 0, time.UTC) }
	sent := day(2, 29)

	require.Equal(t, 200, post("/2028-03?day=29.02.2028", "Tue, 29 Feb 2028 00:00:00 GMT", "2028-03-01", "2028-03-02").StatusCode)
	require.Equal(t, booking{day(3, 1), &sent, sent, []time.Time{day(3, 1), day(3, 2)}}, <-got)

	res := post("/2028-13?day=2028-02-29", "yesterday", "2028-03-01", "2028-02-30")
	require.Equal(t, booking{}, <-got)
	require.Equal(t, 400, res.StatusCode)
	for _, want := range []string{
		`"detail":"must have the form 2006-01","parameter":"month","source":"path"`,
		`"detail":"must have the form 02.01.2006","parameter":"day","source":"query"`,
		`"detail":"must have the form Mon, 02 Jan 2006 15:04:05 GMT","parameter":"If-Modified-Since","source":"header"`,
		`"detail":"must have the form 2006-01-02","parameter":"night","source":"form"`,
	} {
		require.Contains(t, res.body, want)
	}

	res, err := request(t, c, "GET", at+"/mistake?day=2028-02-29")
	require.NoError(t, err)
	require.Equal(t, 500, res.StatusCode)
	require.NotContains(t, res.body, "layout")
	require.Contains(t, l.only(t)["error"], `has the tag layout with "yyyy-mm-dd"`)
}
