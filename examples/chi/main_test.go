package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnderChi(t *testing.T) {
	h, err := newHandler()
	require.NoError(t, err)
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := ts.Client()
	client.Jar = jar

	get := func(path string, trace *httptrace.ClientTrace) (*http.Response, string) {
		ctx := t.Context()
		if trace != nil {
			ctx = httptrace.WithClientTrace(ctx, trace)
		}
		req, err := http.NewRequestWithContext(ctx, "GET", ts.URL+path, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res, string(body)
	}

	res, _ := get("/", nil)
	require.Empty(t, res.Cookies())
	require.NotContains(t, res.Header.Values("Vary"), "Cookie", "what is not read does not vary")

	res, err = client.PostForm(ts.URL+"/notes/first", url.Values{"text": {"hello"}})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	require.Contains(t, res.Header.Get("RateLimit"), `"writes";r=19;`)
	require.Len(t, res.Cookies(), 1)
	_, body := get("/notes", nil)
	require.JSONEq(t, `{"first":"hello"}`, body)

	res, err = client.PostForm(ts.URL+"/notes/second", nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))

	jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	client.Jar = jar
	res, body = get("/stream", nil)
	require.Len(t, res.Cookies(), 1, "flushed first, and the cookie is there")
	require.Equal(t, "streamed\n", body)
	_, body = get("/notes", nil)
	require.JSONEq(t, `{"stream":"begun"}`, body)

	jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	client.Jar = jar
	var hints []textproto.MIMEHeader
	res, _ = get("/early", &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, h)
		return nil
	}})
	require.Len(t, hints, 1)
	require.Empty(t, hints[0].Values("Set-Cookie"), "103 does not commit")
	require.Len(t, res.Cookies(), 1)

	res, body = get("/nowhere", nil)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Equal(t, "404 page not found\n", body, "the router's own answer")
}
