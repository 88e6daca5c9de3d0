package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(5, 0, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	eager, lazy := strings.Fields(lines[1]), strings.Fields(lines[2])
	require.Equal(t, "eager", eager[0])
	require.Equal(t, "2.1", eager[2], "a load and a take for each, and one save in ten")
	require.Equal(t, "lazy", lazy[0])
	require.Equal(t, "0.6", lazy[2], "of ten requests, three load, two take and one saves")
}

func TestBothAnswerAlike(t *testing.T) {
	var answers [2][]string
	for i := range answers {
		st, err := newStores(0)
		require.NoError(t, err)
		srv, err := newServer(st)
		require.NoError(t, err)
		if i == 1 {
			srv.Use(loadSession, parseParams, takeLimit)
		}
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		require.Len(t, w.Result().Cookies(), 1)
		for _, r := range mix(w.Result().Cookies()[0]) {
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code, r.URL)
			answers[i] = append(answers[i], w.Body.String())
		}
	}
	require.Contains(t, answers[0], "you are ada\n")
	require.Contains(t, answers[0], "you wrote: good\n")
	require.Equal(t, answers[0], answers[1])
}
