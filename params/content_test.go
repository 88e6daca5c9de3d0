package params

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContentTypes(t *testing.T) {
	for contentType, want := range map[string]kinds{
		"application/x-www-form-urlencoded":                        formKind,
		"Application/X-WWW-Form-Urlencoded; charset=UTF-8":         formKind,
		"application/json":                                         jsonKind,
		`application/json; charset="utf-8"`:                        jsonKind,
		"application/merge-patch+json":                             jsonKind,
		"application/json; charset=latin1":                         otherKind,
		"application/x-www-form-urlencoded; charset=utf-7":         otherKind,
		"application/notjson":                                      otherKind,
		"model/gltf+json":                                          otherKind,
		"text/json":                                                otherKind,
		"text/plain":                                               otherKind,
		"multipart/form-data; boundary=x":                          multipartKind,
		"multipart/form-data":                                      otherKind,
		"multipart/form-data; boundary=" + strings.Repeat("x", 71): otherKind,
		"multipart/mixed; boundary=x":                              otherKind,
		"application/jsonp":                                        otherKind,
		"application/json; charset=utf-8; x":                       otherKind,
		"application/json, text/plain":                             otherKind,
		"":                                                         otherKind,
		"application/json; charset=utf-8; a=\xff":                  otherKind,
	} {
		got := contentOfType(contentType)
		require.Equal(t, want, got.kind, contentType)
		require.Equal(t, want == otherKind, got.fault != "", contentType)
	}
}

func TestUnsupportedContentIsRefusedUnread(t *testing.T) {
	for contentType, text := range map[string]string{
		"text/plain":                       `has the type "text/plain"; accepted is application/x-www-form-urlencoded or multipart/form-data or application/json`,
		"multipart/mixed; boundary=x":      `has the type "multipart/mixed"`,
		"multipart/form-data":              "has a Content-Type without a valid boundary",
		"application/json; charset=latin1": `has the charset "latin1"; send UTF-8`,
		"application/json; charset":        "has the malformed Content-Type",
		"":                                 "has no Content-Type",
	} {
		r := post("/?q=1", contentType, `{"q":2}`)
		if contentType == "" {
			r.Header.Del("Content-Type")
		}
		body := watch(r)
		p := paramsOf(t, r, Options{})
		e := requireReason(t, failure(p.StringOr("q", "def")), ErrUnsupported, text)
		status, members := e.Problem()
		require.Equal(t, 415, status)
		require.Equal(t, []string{formType, multipartType, jsonType}, members["accepted"])
		require.Zero(t, body.reads)

		require.Equal(t, 1, value(p.Query().Int("q")), "a view of the query has nothing to do with the body")
	}
}

func TestViewsRefuseTheOtherType(t *testing.T) {
	_, err := paramsOf(t, postJSON(`{"q":"1"}`), Options{}).Form().String("q")
	e := requireReason(t, err, ErrUnsupported, `has the type "application/json"; accepted is application/x-www-form-urlencoded`)
	require.Equal(t, []string{formType, multipartType}, e.accepted)

	r := postJSON(`{"q":"1"}`)
	r.Header.Set("Content-Type", "application/problem+json")
	requireReason(t, failure(paramsOf(t, r, Options{}).Form().String("q")), ErrUnsupported, `has the type "application/problem+json"`)

	p := paramsOf(t, postForm("/", "q=1"), Options{})
	_, err = p.JSON().String("q")
	e = requireReason(t, err, ErrUnsupported, "accepted is application/json")
	require.Equal(t, []string{jsonType}, e.accepted)
	requireReason(t, p.DecodeJSON(new(any)), ErrUnsupported, "accepted is application/json")
}

func TestUnknownContentCodingIsRefused(t *testing.T) {
	for _, codings := range []string{"br", "gzip, gzip", "compress"} {
		r := postJSON(`{}`)
		r.Header.Set("Content-Encoding", codings)
		body := watch(r)
		p := paramsOf(t, r, Options{})
		require.Equal(t, 415, statusOf(t, requireReason(t, failure(p.String("q")), ErrUnsupported, `has the unsupported content coding "`+codings+`"`)))
		require.ErrorIs(t, failure(p.Body()), ErrUnsupported)
		require.ErrorIs(t, failure(p.Stream()), ErrUnsupported)
		require.Zero(t, body.reads)
	}

	r := postJSON(`{"q":"1"}`)
	r.Header.Set("Content-Encoding", "identity")
	require.NoError(t, failure(paramsOf(t, r, Options{}).String("q")))
}

// A middleware such as http.MaxBytesHandler wraps http.NoBody, so that the request seems to have a body.
func TestWrappedNoBodyIsNoBody(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/?q=1", nil)
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), http.NoBody, 100)
	r.ContentLength = 0
	require.Equal(t, 1, value(paramsOf(t, r, Options{}).Int("q")))
}

func TestBodyNeedsOneContentType(t *testing.T) {
	r := postJSON(`{}`)
	r.Header.Add("Content-Type", formType)
	requireReason(t, failure(paramsOf(t, r, Options{}).String("q")), ErrUnsupported, "more than one Content-Type")
	for _, length := range []int64{-1, 0} {
		r := httptest.NewRequest(http.MethodPost, "/?q=1", strings.NewReader("q=2"))
		r.ContentLength = length
		requireReason(t, failure(paramsOf(t, r, Options{}).Int("q")), ErrUnsupported, "has no Content-Type")
	}
}

func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"", formType, jsonType, "application/json; charset=utf-8", "a/b; charset=latin1", ";;", "application/a+json;x=\"", "\xff/+json"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, contentType string) {
		got := contentOfType(contentType)
		if got.kind == otherKind {
			require.NotEmpty(t, got.fault)
			require.ErrorIs(t, got.checkKind(formKind|jsonKind), ErrUnsupported)
			return
		}
		media, attributes, err := mime.ParseMediaType(contentType)
		require.NoError(t, err)
		require.Equal(t, kindOf(media), got.kind)
		if charset, ok := attributes["charset"]; ok {
			require.True(t, strings.EqualFold(charset, "utf-8"))
		}
	})
}
