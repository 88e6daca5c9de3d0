package params

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
)

const (
	benchQuery = "q=lazy+params&page=2&size=50&sort=name&exact=true"
	benchJSON  = `{"id":12345,"name":"Ada Lovelace","email":"ada@example.org","active":true,"score":98.5,` +
		`"city":"London","country":"GB","tags":["math","engines"],"visits":42,"note":"wrote the first program"}`
)

type profile struct {
	ID      int      `json:"id"`
	Name    string   `json:"name"`
	Email   string   `json:"email"`
	Active  bool     `json:"active"`
	Score   float64  `json:"score"`
	City    string   `json:"city"`
	Country string   `json:"country"`
	Tags    []string `json:"tags"`
	Visits  int      `json:"visits"`
	Note    string   `json:"note"`
}

type searchQuery struct {
	Q     string `query:"q"`
	Page  int    `query:"page"`
	Size  int    `query:"size"`
	Sort  string `query:"sort"`
	Exact bool   `query:"exact"`
}

// Benchmark reads the five values of a query with accessors, and binds the query and a JSON body of ten members.
func Benchmark(b *testing.B) {
	doc := postJSON("")
	doc.ContentLength = int64(len(benchJSON))
	for name, tt := range map[string]struct {
		r    *http.Request
		read func(ctx context.Context) error
	}{
		"Query": {getRequest(benchQuery), func(ctx context.Context) error {
			p, err := From(ctx)
			_, err1 := p.String("q")
			_, err2 := p.Int("page")
			_, err3 := p.Int("size")
			_, err4 := p.StringOr("sort", "id")
			_, err5 := p.Bool("exact")
			for _, e := range []error{err1, err2, err3, err4, err5} {
				if e != nil {
					return e
				}
			}
			return err
		}},
		"BindQuery": {getRequest(benchQuery), func(ctx context.Context) error { return failure(Bind[searchQuery](ctx)) }},
		"JSON":      {doc, func(ctx context.Context) error { return failure(JSON[profile](ctx)) }},
		"BindJSON":  {doc, func(ctx context.Context) error { return failure(Bind[profile](ctx)) }},
	} {
		b.Run(name, func(b *testing.B) {
			reg := reqctx.NewRegistry(reqctx.Options{})
			Provide(reg, Options{})
			b.ReportAllocs()
			for b.Loop() {
				if tt.r == doc {
					doc.Body = io.NopCloser(strings.NewReader(benchJSON))
				}
				h := reqctx.New(tt.r.Context(), reg)
				h.SetRequest(tt.r)
				if err := tt.read(&h.Context); err != nil {
					b.Fatal(err)
				}
				_ = h.Finish()
			}
		})
	}
}
