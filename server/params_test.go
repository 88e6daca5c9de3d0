package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// upload is a form with a text and a file.
func upload(tb testing.TB, size int) *http.Request {
	tb.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	require.NoError(tb, w.WriteField("title", "T"))
	part, err := w.CreateFormFile("file", "f.bin")
	require.NoError(tb, err)
	_, err = part.Write(bytes.Repeat([]byte("x"), size))
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	r := httptest.NewRequest("POST", "/upload", &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

func TestMistakesOfABindingAreOneProblem(t *testing.T) {
	type search struct {
		Page int    `query:"page"`
		Name string `json:"name" required:"true"`
	}
	srv, l := newServer(t, server.Options{Params: params.Options{Validate: func(_ context.Context, v any) error {
		return params.Fault(v, "Name", "is taken")
	}}})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := params.Bind[search](req.Context())
		return fmt.Errorf("search: %w", err)
	})
	post := func(target, body string) answer {
		r := httptest.NewRequest("POST", target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		return answer{rec.Result(), rec.Body.String()}
	}
	a := post("/?page=x", `{"name":null}`)
	require.Equal(t, http.StatusBadRequest, a.StatusCode)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	require.JSONEq(t, `{"status":400,"title":"Bad Request","detail":"2 parameters are invalid","errors":[
		{"parameter":"page","source":"query","detail":"must be a whole number"},
		{"pointer":"#/name","source":"json","detail":"must not be null"}]}`, a.body)
	a = post("/", `{"name":"ada"}`)
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	require.JSONEq(t, `{"status":422,"title":"Unprocessable Entity","detail":"json parameter \"name\" is taken","errors":[
		{"pointer":"#/name","source":"json","detail":"is taken"}]}`, a.body)
	require.Empty(t, l.at("ERROR"))
}

func TestFilesAreGoneAfterTheResponse(t *testing.T) {
	for name, read := range map[string]func(t *testing.T, req *server.Request){
		"File": func(t *testing.T, req *server.Request) {
			f, err := req.Params().File("file")
			require.NoError(t, err)
			require.EqualValues(t, 200_000, f.Size)
		},
		"Save": func(t *testing.T, req *server.Request) {
			for part, err := range req.Params().Parts() {
				require.NoError(t, err)
				_, err = part.Save()
				require.NoError(t, err)
			}
		},
		"ParseMultipartForm": func(t *testing.T, req *server.Request) {
			require.NoError(t, req.ParseMultipartForm(1000))
			title, err := req.Params().String("title")
			require.NoError(t, err)
			require.Equal(t, "T", title)
			f, err := req.Params().File("file")
			require.NoError(t, err)
			require.EqualValues(t, 200_000, f.Size)
		},
	} {
		for end, handler := range map[string]func(w http.ResponseWriter) error{
			"response": func(http.ResponseWriter) error { return nil },
			"error":    func(http.ResponseWriter) error { return errors.New("failed") },
			"panic":    func(http.ResponseWriter) error { panic("failed") },
			"abort":    func(http.ResponseWriter) error { panic(http.ErrAbortHandler) },
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("TMPDIR", dir)
				srv, l := newServer(t, server.Options{})
				srv.HandleFunc("POST /upload", func(w http.ResponseWriter, req *server.Request) error {
					read(t, req)
					open, known := openIn(t, dir)
					require.Equal(t, known, open > 0)
					return handler(w)
				})
				func() {
					defer func() { _ = recover() }() // an abort goes through
					srv.ServeHTTP(httptest.NewRecorder(), upload(t, 200_000))
				}()
				require.NoError(t, srv.Shutdown(t.Context()))
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left)
				open, _ := openIn(t, dir)
				require.Zero(t, open)
				for _, line := range l.at("ERROR") {
					require.NotContains(t, fmt.Sprint(line), "clean-up")
				}
			})
		}
	}
}

// openIn counts the files of dir that this process has open, where that can be known;
// those that have no name any more count too.
func openIn(tb testing.TB, dir string) (n int, known bool) {
	tb.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	for _, fd := range list {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir) {
			n++
		}
	}
	return n, true
}

func TestRouteHasABudgetOfItsOwn(t *testing.T) {
	srv, _ := newServer(t, server.Options{Params: params.Options{
		MaxFile: 1000, Routes: map[string]params.Options{"POST /upload": {MaxFile: 10_000}},
	}})
	handler := func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Params().File("file")
		return err
	}
	srv.HandleFunc("POST /upload", handler)
	srv.HandleFunc("POST /other", handler)
	for target, want := range map[string]int{"/upload": 200, "/other": 413} {
		r := upload(t, 5000)
		r.URL.Path = target
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		require.Equal(t, want, rec.Code, rec.Body)
	}
}

// begin sends the begin of a request and returns the connection.
func begin(tb testing.TB, url, request string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(tb, err)
	return conn
}

func TestBodyReadTimeoutIs408(t *testing.T) {
	srv, l := newServer(t, server.Options{Params: params.Options{ReadTimeout: 50 * time.Millisecond}})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Params().Form().String("a")
		return err
	})
	url, _ := listen(t, srv)
	conn := begin(t, url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na=1")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	var problem map[string]any
	require.NoError(t, json.NewDecoder(res.Body).Decode(&problem))
	require.Equal(t, "the request body was not received in time", problem["detail"])
	require.Empty(t, l.at("ERROR"))
}

// The deadline for the body is not one for the handler: the server would take it for a
// client that went away.
func TestDeadlineOfABodyEndsWithIt(t *testing.T) {
	t.Parallel()
	srv, _ := newServer(t, server.Options{Params: params.Options{ReadTimeout: 500 * time.Millisecond}})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		if _, err := req.Params().Form().String("a"); err != nil {
			return err
		}
		select {
		case <-req.Context().Done():
			return context.Cause(req.Context())
		case <-time.After(700 * time.Millisecond):
			return nil
		}
	})
	url, _ := listen(t, srv)
	conn := begin(t, url, "")
	br := bufio.NewReader(conn)
	for range 2 { // the connection can be used again
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1")
		require.NoError(t, err)
		res, err := http.ReadResponse(br, nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
}

func TestContinueIsSentWhenTheBodyIsAskedFor(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("POST /body", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Params().Form().String("a")
		return err
	})
	srv.HandleFunc("POST /query", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Params().Query().StringOr("a", "")
		return err
	})
	url, _ := listen(t, srv)
	for path, want := range map[string]int{"body": 100, "query": 200} {
		conn := begin(t, url, "POST /"+path+" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\n")
		br := bufio.NewReader(conn)
		res, err := http.ReadResponse(br, nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, res.StatusCode, path)
		if want == 100 {
			_, err = io.WriteString(conn, "a=1")
			require.NoError(t, err)
			res, err = http.ReadResponse(br, nil)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, 200, res.StatusCode)
		}
	}
}
