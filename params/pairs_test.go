package params

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFaultyPairs(t *testing.T) {
	for pairs, text := range map[string]string{
		"ok=1&q=%zz":        `parameter "q" has the malformed percent-encoding "%zz"`,
		"q=%":               `"%"`,
		"q=a%4":             `"%4"`,
		"%g1=1":             `has a parameter whose name has the malformed percent-encoding "%g1"`,
		"q=1;drop=2":        `parameter "q" has a semicolon`,
		"a;b=1":             "has a semicolon",
		"q=%ff":             `parameter "q" is not valid UTF-8`,
		"q=\xff":            `parameter "q" is not valid UTF-8`,
		"\xff=%zz":          "has a parameter whose name is not valid UTF-8",
		"q=%C3%28":          "is not valid UTF-8",
		"q=a%00b":           `parameter "q" has a NUL byte`,
		"q=a\x00b":          `parameter "q" has a NUL byte`,
		"%00=1":             "has a NUL byte",
		"q=%ed%a0%80":       "is not valid UTF-8", // a surrogate
		"other=%&wanted=ok": `parameter "other"`,
	} {
		r := getRequest("")
		r.URL.RawQuery = pairs
		p := paramsOf(t, r, Options{})
		_, err := p.StringOr("wanted", "def")
		require.Contains(t, requireReason(t, err, ErrMalformed, text).Error(), "query")
		require.Same(t, err, failure(p.String("wanted")), "a fault is found once")
		requireReason(t, failure(paramsOf(t, postForm("/", pairs), Options{}).Form().String("wanted")), ErrMalformed, text)
	}
}

func TestDecodedPairs(t *testing.T) {
	pairs := value(parsePairs(nil, "a+b=c%20d%2B&&e&=f&g=h=i&%C3%A9=%e2%82%ac&", SourceQuery, 10))
	require.Equal(t, []pair{{"a b", "c d+"}, {"e", ""}, {"", "f"}, {"g", "h=i"}, {"é", "€"}}, pairs)
}

func TestNumberOfParametersIsBounded(t *testing.T) {
	query := "a" + strings.Repeat("&a", 10)
	_, err := paramsOf(t, getRequest(query), Options{MaxParams: 10}).Query().Strings("a")
	require.Equal(t, 414, statusOf(t, requireReason(t, err, ErrTooLarge, "the query has more than 10 parameters")))

	_, err = paramsOf(t, postForm("/", query), Options{MaxParams: 10}).Form().Strings("a")
	require.Equal(t, 413, statusOf(t, requireReason(t, err, ErrTooLarge, "the request body has more than 10 parameters")))

	require.Len(t, value(paramsOf(t, getRequest(query), Options{MaxParams: 11}).Strings("a")), 11)

	require.Len(t, value(paramsOf(t, getRequest(strings.Repeat("&", 5000)+"a=1"), Options{}).Strings("a")), 1)
}

// faultless reports whether all names and values are texts that the package accepts.
func faultless(values url.Values) bool {
	for name, all := range values {
		if textProblem(name) != "" {
			return false
		}
		for _, value := range all {
			if textProblem(value) != "" {
				return false
			}
		}
	}
	return true
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "a+b=%20", "%zz", "a;b", "=&=", "a=%C3%A9", "a=%00", "\xff=1", "a%", "a=b=c&a"} {
		f.Add(seed)
	}
	for _, seed := range []string{"a=1&n=2&n=3", "l.0.n=1&l.5.l.1.n=2", "p.n=1&p.p.p.a=x", "l.01.a=1", "n=x&a=1&a=2", "t=2026-01-02T03:04:05Z&o="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		bindAnything(t, query)
		const limit = 8
		pairs, err := parsePairs(nil, query, SourceQuery, limit)
		want, wantErr := url.ParseQuery(query)
		if err != nil {
			if errors.Is(err, ErrMalformed) && wantErr == nil && faultless(want) {
				t.Fatalf("refused %q, which net/url reads as %v: %v", query, want, err)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("accepted %q, which net/url refuses: %v", query, wantErr)
		}
		if len(pairs) > limit {
			t.Fatalf("%d pairs of at most %d", len(pairs), limit)
		}
		got := url.Values{}
		for _, p := range pairs {
			got.Add(p.name, p.value)
		}
		require.Equal(t, want, got)
		require.True(t, faultless(got))
	})
}

// bound has fields of all kinds that a query or a form can fill.
type bound struct {
	A string    `query:"a" form:"a"`
	N []int     `query:"n" form:"n"`
	T time.Time `query:"t" form:"t"`
	O Opt[bool] `query:"o" form:"o"`
	V struct {
		A string `query:"a" form:"a"`
	} `query:"v" form:"v"`
	P *bound  `query:"p" form:"p"`
	L []bound `query:"l" form:"l"`
}

// count returns the number of structs and elements in b.
func (b *bound) count() int {
	n := len(b.N) + len(b.L)
	if b.P != nil {
		n += 1 + b.P.count()
	}
	for i := range b.L {
		n += b.L[i].count()
	}
	return n
}

// bindAnything binds a query, and checks the values and that Bind makes no more structs and elements than the query has.
func bindAnything(t *testing.T, query string) {
	v := bound{}
	p := value(newCompiler(SourceQuery).planFor(reflect.TypeFor[bound]()))
	o := testOptions()
	o.MaxElements = 50
	pairs, err := parsePairs(nil, query, SourceQuery, 50)
	if err != nil {
		return
	}
	b := binder{options: o}
	b.fillFields(p.fields, reflect.ValueOf(&v).Elem(), values{pairs: pairs}, nil, 0)
	require.LessOrEqual(t, v.count(), o.MaxElements)
	require.LessOrEqual(t, v.count(), len(query))
	if b.faults != nil {
		return
	}
	want := value(url.ParseQuery(query))
	require.Equal(t, want.Get("a"), v.A)
	require.Equal(t, want.Get("v.a"), v.V.A)
	require.Len(t, v.N, len(want["n"]))
	if v.P != nil {
		require.Equal(t, want.Get("p.a"), v.P.A)
	}
}

// FuzzForm checks that ParseForm finds the same form if it is called afterwards.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "a=1&a=2&&", "a=%zz", "a=1;b", "a=\x00", "%e2%82%ac=%e2%82%ac"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := postForm("/", text)
		b := value(paramsOf(t, r, Options{}).body(formKind))
		type form struct {
			A bound `form:"a"`
		}
		_, bindErr := Bind[form](newContext(t, postForm("/", text), Options{}))
		if bindErr != nil {
			require.NotErrorIs(t, bindErr, ErrBodyTaken)
			statusOf(t, bindErr)
		}
		require.True(t, b.formErr == nil || bindErr != nil)
		stdErr := r.ParseForm()
		if b.formErr != nil {
			require.True(t, stdErr != nil || !faultless(r.PostForm) || strings.Count(text, "&") >= defaults.MaxParams)
			return
		}
		require.NoError(t, stdErr)
		got := url.Values{}
		for _, p := range b.form.pairs {
			got.Add(p.name, p.value)
		}
		require.Equal(t, r.PostForm, got)
	})
}
