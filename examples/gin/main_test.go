package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec
}

func TestPathValuesAndDenials(t *testing.T) {
	h, err := newHandler()
	require.NoError(t, err)
	res := get(h, "/books/7")
	require.Equal(t, http.StatusOK, res.Code)
	require.JSONEq(t, `{"id":7}`, res.Body.String())
	require.NotEmpty(t, res.Header().Get("RateLimit"))

	res = get(h, "/books/seven")
	require.Equal(t, http.StatusBadRequest, res.Code)
	require.Contains(t, res.Body.String(), `path parameter \"id\"`)

	res = get(h, "/books/7")
	require.Equal(t, http.StatusTooManyRequests, res.Code)
	require.Equal(t, "application/problem+json", res.Header().Get("Content-Type"))
	require.NotEmpty(t, res.Header().Get("Retry-After"))
	require.Equal(t, http.StatusNotFound, get(h, "/nowhere").Code)
}
