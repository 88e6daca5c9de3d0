package params

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// newContext returns the context of a request r that has parameters.
func newContext(t testing.TB, r *http.Request, o Options) *reqctx.Host {
	t.Helper()
	reg := reqctx.NewRegistry(reqctx.Options{})
	Provide(reg, o)
	c := reqctx.New(r.Context(), reg)
	c.SetRequest(r)
	t.Cleanup(func() { require.NoError(t, c.Finish()) })
	return c
}

func paramsOf(t testing.TB, r *http.Request, o Options) *Params {
	t.Helper()
	p := value(From(newContext(t, r, o)))
	return p
}

// getRequest returns a GET request for /?query.
func getRequest(query string) *http.Request {
	return httptest.NewRequest(http.MethodGet, "/?"+query, nil)
}

func postForm(target, form string) *http.Request {
	return post(target, formType, form)
}

func postJSON(doc string) *http.Request {
	return post("/", jsonType, doc)
}

func post(target, contentType, content string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(content))
	r.Header.Set("Content-Type", contentType)
	return r
}

// spy counts the reads of a body.
type spy struct {
	io.Reader
	mu    sync.Mutex
	reads int
}

func (s *spy) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.Reader.Read(p)
}

func (s *spy) Close() error { return nil }

// watch replaces r's body by one that counts its reads.
func watch(r *http.Request) *spy {
	s := &spy{Reader: r.Body}
	r.Body = s
	return s
}

// value returns v, and panics after an error.
func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// failure returns the error of a call and drops its value.
func failure[T any](_ T, err error) error { return err }

// errorsOf returns the Errors in err's chain.
func errorsOf(t testing.TB, err error) (list Errors) {
	t.Helper()
	require.ErrorAs(t, err, &list)
	return list
}

func requireReason(t testing.TB, err error, reason error, text string) *Error {
	t.Helper()
	require.ErrorIs(t, err, reason)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Error(), text)
	return e
}

func TestOrderIsPathThenBodyThenQuery(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, methodQuery} {
		r := postForm("/?a=query&b=query&c=query&d=query", "a=body&b=body&d=")
		r.Method = method
		r.SetPathValue("a", "path")
		p := paramsOf(t, r, Options{})
		for name, want := range map[string]string{"a": "path", "b": "body", "c": "query", "d": ""} {
			require.Equal(t, want, value(p.StringOr(name, "default")), name)
			require.Equal(t, []string{want}, value(p.Strings(name)), name)
		}
		for want, v := range map[string]View{"path": p.Path(), "query": p.Query(), "body": p.Form()} {
			require.Equal(t, want, value(v.String("a")))
		}
		require.Equal(t, "body", value(p.Content().String("a")))

		requireReason(t, failure(p.Query().String("x")), ErrMissing, `query parameter "x" is missing`)
		requireReason(t, failure(p.Form().String("c")), ErrMissing, `form parameter "c" is missing`)
		requireReason(t, failure(p.Path().String("b")), ErrMissing, `path parameter "b" is missing`)
		require.Empty(t, requireReason(t, failure(p.String("x")), ErrMissing, `parameter "x" is missing`).Source)
	}
}

func TestBodyIsReadOnlyIfNeeded(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
		r := postForm("/?q=go", "q=7")
		r.Method = method
		body := watch(r)
		p := paramsOf(t, r, Options{})
		require.Equal(t, "go", value(p.String("q")))
		require.ErrorIs(t, failure(p.String("none")), ErrMissing)
		require.Zero(t, body.reads, method)
		require.Equal(t, 7, value(p.Form().Int("q")))
	}
	r := postForm("/?q=go", "q=body")
	body := watch(r)
	p := paramsOf(t, r, Options{})
	require.NoError(t, failure(p.Query().String("q")))
	require.NoError(t, failure(p.Path().StringOr("id", "")))
	require.Zero(t, body.reads)
}

// For a QUERY, ParseForm sets PostForm, but it does not read the body.
func TestQueryAfterParseForm(t *testing.T) {
	r := postForm("/?q=query", "q=body")
	r.Method = methodQuery
	p := paramsOf(t, r, Options{})
	require.NoError(t, r.ParseForm())
	require.Equal(t, "body", value(p.String("q")))
}

func TestEachSourceIsParsedOnce(t *testing.T) {
	r := postForm("/?q=1", "a=1")
	body := watch(r)
	c := newContext(t, r, Options{})
	require.Same(t, value(From(c)), value(reqctx.Get(c, "params")))
	require.Zero(t, body.reads)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			p, _ := From(context.WithValue(c, sync.Once{}, 1))
			if a, err := p.Int("a"); a != 1 || err != nil {
				t.Error(a, err)
			}
			if q, err := p.Int("q"); q != 1 || err != nil {
				t.Error(q, err)
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, body.reads, 2) // one read for the bytes, and one for the end
	r.URL.RawQuery = "q=2"
	require.Equal(t, 1, value(value(From(c)).Query().Int("q")))
}

func TestEmptyWildcardIsNotReplacedByTheQuery(t *testing.T) {
	for target, want := range map[string]string{"/files/?path=/etc/passwd": "", "/files/a/b%20c?path=x": "a/b c"} {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /files/{path...}", func(_ http.ResponseWriter, r *http.Request) {
			require.Equal(t, want, value(paramsOf(t, r, Options{}).String("path")))
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	}
}

func TestIsWildcard(t *testing.T) {
	require.True(t, isWildcard("GET /a/{id}/b/{rest...}", "id"))
	require.True(t, isWildcard("GET /a/{id}/b/{rest...}", "rest"))
	require.False(t, isWildcard("GET /a/{id}/b/{rest...}", "i"))
	require.False(t, isWildcard("/{$}", "$"))
	require.False(t, isWildcard("/broken/{id", "b"))
}

func TestMalformedPathValue(t *testing.T) {
	for value, text := range map[string]string{"a\xffb": "is not valid UTF-8", "a\x00b": "has a NUL byte"} {
		r := getRequest("id=1")
		r.SetPathValue("id", value)
		requireReason(t, failure(paramsOf(t, r, Options{}).String("id")), ErrMalformed, `path parameter "id" `+text)
	}
}

func TestFromCarriesItsError(t *testing.T) {
	requireDead := func(ctx context.Context, want error) {
		p, err := From(ctx)
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, failure(p.StringOr("q", "")), want)
		require.ErrorIs(t, failure(p.Query().Strings("q")), want)
		require.ErrorIs(t, failure(p.Body()), want)
		require.ErrorIs(t, p.DecodeJSON(new(any)), want)
		require.ErrorIs(t, failure(JSON[any](ctx)), want)
		require.ErrorIs(t, failure(Bind[search](ctx)), want)
	}
	requireDead(t.Context(), reqctx.ErrNoRequest)

	reg := reqctx.NewRegistry(reqctx.Options{})
	requireDead(reqctx.New(t.Context(), reg), reqctx.ErrNoProperty)
	Provide(reg, Options{})
	requireDead(reqctx.New(t.Context(), reg), reqctx.ErrNoRequest)

	c := reqctx.New(t.Context(), reg)
	c.SetRequest(getRequest("q=1"))
	require.NoError(t, c.Finish())
	requireDead(c, reqctx.ErrFinished)
	require.ErrorIs(t, failure(View{}.String("q")), errNoParams)
	require.Panics(t, func() { Provide(reg, Options{}) }, "a second time")
}

func TestUntouchedParamsCostNothing(t *testing.T) {
	r := getRequest("q=1")
	bare := reqctx.NewRegistry(reqctx.Options{})
	with := reqctx.NewRegistry(reqctx.Options{})
	Provide(with, Options{})
	allocs := func(reg *reqctx.Registry) float64 {
		return testing.AllocsPerRun(100, func() {
			c := reqctx.New(r.Context(), reg)
			c.SetRequest(r)
			_ = c.Finish()
		})
	}
	require.Equal(t, allocs(bare), allocs(with))
}
