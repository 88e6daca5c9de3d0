package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrders(t *testing.T) {
	srv, err := newServer()
	require.NoError(t, err)
	for _, tt := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"/orders/eu?notify=1", `{"email":"ada@example.org","lines":[{"sku":"a-1","count":2}]}`, 200,
			`{"Region":"eu","email":"ada@example.org","lines":[{"sku":"a-1","count":2}],"Notify":true}`},
		{"/orders/mars", `{"email":"ada","lines":[{"sku":"a-1","count":2},{"sku":"a","count":0}]}`, 422,
			`{"status":422,"title":"Unprocessable Entity","detail":"4 parameters are invalid","errors":[
				{"parameter":"region","source":"path","detail":"must be one of eu us"},
				{"pointer":"#/email","source":"json","detail":"must be an e-mail address"},
				{"pointer":"#/lines/1/sku","source":"json","detail":"must have at least 3"},
				{"pointer":"#/lines/1/count","source":"json","detail":"must be more than 0"}]}`},
		{"/orders/eu?notify=x", `{"lines":[{"count":"2"}],"admin":true}`, 400,
			`{"status":400,"title":"Bad Request","detail":"5 parameters are invalid","errors":[
				{"parameter":"notify","source":"query","detail":"must be true or false"},
				{"pointer":"#/email","source":"json","detail":"is missing"},
				{"pointer":"#/lines/0/sku","source":"json","detail":"is missing"},
				{"pointer":"#/lines/0/count","source":"json","detail":"must be a whole number, not a string"},
				{"pointer":"#/admin","source":"json","detail":"is unknown"}]}`},
		{"/orders/eu", `{"email":"` + strings.Repeat("x", 16<<10) + `"}`, 413,
			`{"status":413,"title":"Request Entity Too Large","detail":"the request body is larger than 16384 bytes"}`},
	} {
		r := httptest.NewRequest("POST", tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		require.Equal(t, tt.status, rec.Code, rec.Body)
		require.JSONEq(t, tt.want, rec.Body.String())
	}
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, httptest.NewRequest("POST", "/orders/eu", strings.NewReader("x")))
	require.Equal(t, http.StatusUnsupportedMediaType, rec.Code)
}
