// Validator is a server that checks bound parameters with go-playground/validator. The rules are in the tags
// of structs. One problem response lists all broken rules, with the client's names of the fields. For sizes,
// ranges and lists of words, the tags of package params are enough.
//
//	cd examples/validator && go run .
//
//	curl -i http://127.0.0.1:8080/orders/eu -H 'Content-Type: application/json' \
//	  -d '{"email":"ada","lines":[{"sku":"a-1","count":0}]}'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n\n  curl -i http://%[1]s/orders/eu -H 'Content-Type: application/json' \\\n"+
		"    -d '{\"email\":\"ada\",\"lines\":[{\"sku\":\"a-1\",\"count\":0}]}'\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

// order is bound from several sources. Each field has tags for its source and for its rule.
type order struct {
	Region string `path:"region" validate:"oneof=eu us"`
	Email  string `json:"email" required:"true" validate:"email"`
	Lines  []line `json:"lines" validate:"min=1,dive"`
	Notify bool   `query:"notify"`
}

type line struct {
	SKU   string `json:"sku" required:"true" validate:"min=3"`
	Count int    `json:"count" validate:"gt=0"`
}

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{Params: params.Options{
		Validate: newValidator(validator.New(validator.WithRequiredStructEnabled())),
		Routes: map[string]params.Options{
			"POST /orders/{region}": {MaxBody: 16 << 10, DisallowUnknownFields: true},
		},
	}})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("POST /orders/{region}", func(w http.ResponseWriter, req *server.Request) error {
		o, err := params.Bind[order](req)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(o)
	})
	return srv, nil
}

// newValidator returns a function for params.Options.Validate. The validator's name of a field is
// "order.Lines[0].Count", for example. Fault turns this into "#/lines/0/count".
func newValidator(v *validator.Validate) func(context.Context, any) error {
	return func(ctx context.Context, bound any) error {
		if reflect.TypeOf(bound).Elem().Kind() != reflect.Struct {
			return nil // the struct has no tags
		}
		err := v.StructCtx(ctx, bound)
		var refused validator.ValidationErrors
		if !errors.As(err, &refused) {
			return err
		}
		var list params.Errors
		for _, f := range refused {
			_, field, _ := strings.Cut(f.StructNamespace(), ".")
			list = append(list, params.Fault(bound, field, describeRule(f)))
		}
		return list
	}
}

// describeRule returns a text such as "must be more than 0" for a rule. An application may want to translate it.
func describeRule(f validator.FieldError) string {
	switch f.Tag() {
	case "email":
		return "must be an e-mail address"
	case "oneof":
		return "must be one of " + f.Param()
	case "gt":
		return "must be more than " + f.Param()
	case "min":
		return "must have at least " + f.Param()
	}
	return "breaks the rule " + f.Tag()
}
