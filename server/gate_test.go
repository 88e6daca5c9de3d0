package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// ways returns functions that send the header in all possible ways. They return the error of the writer if it has
// one.
func ways(tb testing.TB) map[string]func(w http.ResponseWriter) error {
	path := filepath.Join(tb.TempDir(), "file")
	require.NoError(tb, os.WriteFile(path, []byte("body"), 0o600))
	return map[string]func(w http.ResponseWriter) error{
		"Write": func(w http.ResponseWriter) error { _, err := w.Write([]byte("body")); return err },
		"WriteHeader": func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusAccepted)
			return writeText(w, "body")
		},
		"ReadFrom": func(w http.ResponseWriter) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = w.(io.ReaderFrom).ReadFrom(f)
			return err
		},
		"io.Copy": func(w http.ResponseWriter) error {
			_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("body")})
			return err
		},
		"http.ServeFile": func(w http.ResponseWriter) error {
			http.ServeFile(w, httptest.NewRequest("GET", "/", nil), path)
			return nil
		},
		"Flusher": func(w http.ResponseWriter) error {
			w.(http.Flusher).Flush()
			return writeText(w, "body")
		},
		"ResponseController": func(w http.ResponseWriter) error {
			err := http.NewResponseController(w).Flush()
			if err == nil {
				_, err = io.WriteString(w, "body")
			}
			return err
		},
		"return":    func(http.ResponseWriter) error { return nil },
		"204":       func(w http.ResponseWriter) error { w.WriteHeader(http.StatusNoContent); return nil },
		"304":       func(w http.ResponseWriter) error { w.WriteHeader(http.StatusNotModified); return nil },
		"404":       func(w http.ResponseWriter) error { http.Error(w, "body", http.StatusNotFound); return nil },
		"redirect":  func(w http.ResponseWriter) error { w.Header().Set("Location", "/"); w.WriteHeader(303); return nil },
		"a problem": func(http.ResponseWriter) error { return server.Errorf(http.StatusTeapot, "body") },
	}
}

func TestEveryWayToRespondCommitsFirst(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			provideMark(srv)
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, req *server.Request) error {
				if err := way(w); err != nil {
					return err
				}
				if name != "return" && name != "a problem" {
					require.ErrorIs(t, mark.Set(req.Context(), "late"), reqctx.ErrCommitted)
				}
				return nil
			}))
			url, c := listen(t, srv)
			wrapped, _ := listen(t, srv.Wrap(router2(srv)))
			for method, url := range map[string]string{"GET": url, "HEAD": url, http.MethodGet + " ": wrapped} {
				method = strings.TrimSpace(method)
				res, err := request(t, c, method, url)
				require.NoError(t, err)
				require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"), method)
				if method == "GET" && name != "return" && res.StatusCode/100 != 3 && res.StatusCode != 204 {
					require.Contains(t, res.body, "body")
				}
			}
			require.Empty(t, l.at(""))
		})
	}
}

// fromWriter is a ResponseWriter that records calls of ReadFrom.
type fromWriter struct {
	*httptest.ResponseRecorder
	src io.Reader
}

func (w *fromWriter) ReadFrom(src io.Reader) (int64, error) {
	w.src = src
	return io.Copy(w.ResponseRecorder, src)
}

// ReadFrom passes its reader on unchanged, because net/http uses sendfile only if it gets the file itself and not a
// wrapper.
func TestReadFromPassesTheFileOn(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("body"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
		_, err := io.Copy(w, struct{ io.Reader }{f})
		return err
	})
	w := &fromWriter{ResponseRecorder: httptest.NewRecorder()}
	srv.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, struct{ io.Reader }{f}, w.src)
	require.Equal(t, "body", w.Body.String())

	// Without a ReaderFrom below, the gate uses Write.
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	require.Equal(t, "body", ask(srv, "GET", "/").body)
}

func TestHijackCommitsAndLeavesTheRestToTheHandler(t *testing.T) {
	for name, switched := range map[string]bool{"at once": false, "after WriteHeader(101)": true} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			provideMark(srv)
			done := make(chan struct{})
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, req *server.Request) error {
				req.OnClose(func() error { close(done); return nil })
				if switched {
					w.WriteHeader(http.StatusSwitchingProtocols)
					require.ErrorIs(t, mark.Set(req.Context(), "late"), reqctx.ErrCommitted)
				}
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return err
				}
				defer conn.Close()
				require.ErrorIs(t, mark.Set(req.Context(), "late"), reqctx.ErrCommitted)
				_, err = w.Write([]byte("x"))
				require.ErrorIs(t, err, http.ErrHijacked)
				_, _, err = w.(http.Hijacker).Hijack()
				require.ErrorIs(t, err, http.ErrHijacked)
				if !switched {
					_, _ = io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\n")
					_ = w.Header().Write(rw)
					_, _ = io.WriteString(rw, "\r\n")
				}
				_, _ = io.WriteString(rw, "raw")
				_ = rw.Flush()
				return errors.New("the handler's own")
			}))
			url, _ := listen(t, srv)
			in := bufio.NewReader(begin(t, url, get))
			text := textproto.NewReader(in)
			status, err := text.ReadLine()
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 101 Switching Protocols", status)
			h, err := text.ReadMIMEHeader()
			require.NoError(t, err)
			require.Equal(t, []string{"1"}, h.Values("X-Mark"))
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			require.Equal(t, "raw", string(rest))
			<-done
			require.Equal(t, "handler of a hijacked connection failed", l.only(t)["msg"])
			require.Empty(t, l.at("WARN"), "nothing has reached net/http")
		})
	}
}

// hijackable is a ResponseWriter whose connection can be hijacked.
type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// Early Hints commit nothing: a session that is written afterwards still gets its cookie.
func TestInformationalResponsesCommitNothing(t *testing.T) {
	field := session.NewField[string]("informed")
	srv, l := newServer(t, server.Options{})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		w.Header().Set("Link", "</style.css>; rel=preload")
		for _, status := range []int{http.StatusContinue, http.StatusProcessing, http.StatusEarlyHints} {
			w.WriteHeader(status)
		}
		if err := field.Set(req.Context(), "x"); err != nil {
			return err
		}
		_, err := io.WriteString(w, "body")
		w.WriteHeader(http.StatusEarlyHints) // too late
		return err
	})
	url, c := listen(t, srv)
	var informed []int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			informed = append(informed, code)
			require.Empty(t, h.Values("Set-Cookie"))
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	require.NoError(t, err)
	res, err := c.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, []int{100, 102, 103}, informed)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Len(t, res.Cookies(), 1)
	require.Len(t, l.at("WARN"), 1)
	require.Equal(t, "/", l.at("WARN")[0]["path"])
}

// A goroutine that outlives its handler cannot send anything.
func TestGateIsClosedAfterTheHandler(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provideMark(srv)
	writers := make(chan http.ResponseWriter, 1)
	srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
		writers <- w
		return nil
	}))
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	w := <-writers
	_, err := w.Write([]byte("late"))
	require.ErrorIs(t, err, reqctx.ErrFinished)
	_, err = w.(io.ReaderFrom).ReadFrom(strings.NewReader("late"))
	require.ErrorIs(t, err, reqctx.ErrFinished)
	require.ErrorIs(t, http.NewResponseController(w).Flush(), reqctx.ErrFinished)
	_, _, err = http.NewResponseController(w).Hijack()
	require.ErrorIs(t, err, reqctx.ErrFinished)
	w.(http.Flusher).Flush()
	w.WriteHeader(http.StatusTeapot)
	w.Header().Set("X-Late", "yes")
	require.Equal(t, http.StatusOK, rec.Code)
	require.Empty(t, rec.Body.String())
	require.False(t, rec.Flushed)
	require.Empty(t, rec.Header().Get("X-Late"))
	require.Contains(t, l.only(t)["error"], reqctx.ErrFinished.Error())
}

//lint:ignore SA1019 frameworks assert it on whatever writer they get: gin does in Context.Stream
type closeNotifier = http.CloseNotifier

func TestCloseNotify(t *testing.T) {
	for name, listen := range protocols {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			asked, gone := make(chan struct{}), make(chan bool, 1)
			url, c := listen(t, srv.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				notify := w.(closeNotifier).CloseNotify()
				if notify != w.(closeNotifier).CloseNotify() || len(notify) > 0 {
					t.Error("each call makes a channel, or the client is gone")
				}
				close(asked)
				gone <- <-notify
			})))
			leave(t, c, httptest.NewRequest("GET", url, nil), asked)
			require.True(t, <-gone)
		})
	}
}
