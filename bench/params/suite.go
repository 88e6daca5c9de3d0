package params

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/reqctx"
)

// query is a struct of five fields, with the tags of the others.
type query struct {
	Q     string `query:"q" form:"q" schema:"q"`
	Page  int    `query:"page" form:"page" schema:"page"`
	Size  int    `query:"size" form:"size" schema:"size"`
	Sort  string `query:"sort" form:"sort" schema:"sort"`
	Exact bool   `query:"exact" form:"exact" schema:"exact"`
}

// profile is a document of ten fields.
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

const (
	rawQuery = "q=lazy+params&page=2&size=50&sort=name&exact=true"
	document = `{"id":12345,"name":"Ada Lovelace","email":"ada@example.org","active":true,"score":98.5,` +
		`"city":"London","country":"GB","tags":["math","engines"],"visits":42,"note":"wrote the first program"}`
)

var wantQuery = query{"lazy params", 2, 50, "name", true}

// contender binds a request into a struct, again and again.
type contender struct {
	name string
	ours bool
	loop func() harness.Loop
}

// cases are what is compared.
var cases = []struct {
	name       string
	contenders []contender
}{
	{"query-5", []contender{
		{"lazyreq", true, queryLoop(lazyreqQuery)},
		{"gorilla/schema", false, queryLoop(schemaQuery)},
		{"playground/form", false, queryLoop(formQuery)},
		{"gin", false, queryLoop(ginQuery)},
		{"echo", false, queryLoop(echoQuery)},
	}},
	{"json-10", []contender{
		{"lazyreq", true, jsonLoop(lazyreqJSON)},
		{"encoding/json", false, jsonLoop(plainJSON)},
		{"gin", false, jsonLoop(ginJSON)},
		{"echo", false, jsonLoop(echoJSON)},
	}},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "params",
		About: "bind five fields of a query, or a JSON body of ten, to a struct, without validation",
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	rounds, length := 15, harness.FullRound
	if r.Quick {
		rounds, length = 5, harness.QuickRound
	}
	for _, c := range cases {
		var contenders []harness.Contender
		for _, one := range c.contenders {
			contenders = append(contenders, harness.Contender{
				Name: one.name, Ours: one.ours,
				Start: func(context.Context) (harness.Instance, error) { return harness.NewTimed(one.loop(), length) },
			})
		}
		if err := r.Compare(ctx, c.name, rounds, harness.LoopMetrics, contenders); err != nil {
			return err
		}
	}
	return nil
}

// queryLoop makes a loop of binding one request's query.
func queryLoop(make func() func(*reqctx.Host) (query, error)) func() harness.Loop {
	return func() harness.Loop {
		bind, r := withContext(make()), newRequest("GET", "/?"+rawQuery, nil)
		return func(n int) error {
			for range n {
				if v, err := bind(r); err != nil || v != wantQuery {
					return fmt.Errorf("%w: %v %v", harness.ErrWrong, v, err)
				}
			}
			return nil
		}
	}
}

// jsonLoop makes a loop of binding a new body.
func jsonLoop(make func() func(*reqctx.Host) (profile, error)) func() harness.Loop {
	return func() harness.Loop {
		bind, r := withContext(make()), newRequest("POST", "/", http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(document))
		return func(n int) error {
			for range n {
				r.Body = io.NopCloser(strings.NewReader(document))
				v, err := bind(r)
				if err != nil || v.ID != 12345 || len(v.Tags) != 2 || v.Visits != 42 || v.Note != "wrote the first program" {
					return fmt.Errorf("%w: %v %v", harness.ErrWrong, v, err)
				}
			}
			return nil
		}
	}
}

func newRequest(method, target string, body io.Reader) *http.Request {
	r, err := http.NewRequest(method, target, body)
	if err != nil {
		panic(err) // the targets are in this file
	}
	return r
}
