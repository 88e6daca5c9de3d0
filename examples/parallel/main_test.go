package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server/servertest"
)

// TestTimes runs in a synctest bubble. Time passes there only while all goroutines wait, so the times are exact.
func TestTimes(t *testing.T) {
	for path, took := range map[string]string{
		"/sequential": "800ms",
		"/parallel":   "500ms",
		"/prefetched": "500ms",
		"/required":   "500ms",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			srv, err := newServer(&out)
			require.NoError(t, err)
			res := servertest.Do(t, srv, httptest.NewRequest("GET", path, nil))
			require.Equal(t, http.StatusOK, res.Code)
			require.Equal(t, "weather: sunny, news: none\n", res.Body.String())
			require.Equal(t, path+" took "+took+"\n", out.String())
			res.RequireResolved(t, "weather", "news")
		})
	}
}
