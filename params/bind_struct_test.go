package params

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type shipping struct {
	City string `json:"city" form:"city" required:"true"`
	Days int    `json:"days" form:"days" default:"3"`
	To   struct {
		Name string `json:"name" form:"name" required:"true"`
	} `json:"to" form:"to"`
}

// TestAbsentStruct checks that a missing struct counts as an empty struct, both in JSON and in a form.
func TestAbsentStruct(t *testing.T) {
	type inJSON struct {
		Ship shipping `json:"ship"`
	}
	type inForm struct {
		Ship shipping `form:"ship"`
	}
	missing := func(err error) (names []string) {
		list := errorsOf(t, err)
		for _, e := range list {
			require.ErrorIs(t, e, ErrMissing)
			require.Equal(t, e.Source == SourceJSON, e.Pointer() == "#/"+strings.ReplaceAll(e.Name, ".", "/"))
			names = append(names, e.Name)
		}
		return names
	}
	for _, doc := range []string{``, `{}`, `{"ship":null}`, `{"ship":{}}`, `{"ship":{"to":null}}`} {
		_, err := Bind[inJSON](newContext(t, postJSON(doc), Options{}))
		require.ElementsMatch(t, []string{"ship.city", "ship.to.name"}, missing(err), doc)
	}
	for _, form := range []string{"", "ship=x&to.name=x"} {
		_, err := Bind[inForm](newContext(t, postForm("/", form), Options{}))
		require.ElementsMatch(t, []string{"ship.city", "ship.to.name"}, missing(err), form)
	}
	_, err := JSON[shipping](newContext(t, postJSON(`null`), Options{}))
	require.Equal(t, []string{"city", "to.name"}, missing(err))
	_, err = JSON[[]shipping](newContext(t, postJSON(`[null,{"city":"Rome"}]`), Options{}))
	require.Equal(t, []string{"0.city", "0.to.name", "1.to.name"}, missing(err))
	_, err = JSON[struct {
		Ship shipping `json:"ship" required:"true"`
	}](newContext(t, postJSON(`{}`), Options{}))
	require.Equal(t, "ship", requireReason(t, err, ErrMissing, "is missing").Name)

	type page struct {
		In struct {
			Size int `json:"size" form:"size" default:"20"`
			More struct {
				On Opt[bool] `json:"on" form:"on" default:"true"`
			} `json:"more" form:"more"`
		} `json:"in" form:"in"`
	}
	for _, doc := range []string{`{}`, `{"in":null}`, `{"in":{"more":{}}}`} {
		got := value(JSON[page](newContext(t, postJSON(doc), Options{})))
		require.Equal(t, 20, got.In.Size)
		require.Equal(t, Some(true), got.In.More.On)
	}
}

func TestExcludedField(t *testing.T) {
	type audit struct {
		By string `json:"by"`
	}
	type order struct {
		Item  string `json:"item"`
		Audit audit  `json:"-"`
		Count int    `query:"-"`
	}
	ctx := newContext(t, postJSON(`{"item":"x","by":"root","Count":1}`), Options{})
	require.Equal(t, order{Item: "x"}, value(Bind[order](ctx)))
}

// If a struct is behind a pointer or in an Opt, its required fields may only be missing together with the whole struct.
func TestAbsentPointerToAStruct(t *testing.T) {
	type inJSON struct {
		Ship *shipping     `json:"ship"`
		Opt  Opt[shipping] `json:"opt"`
	}
	type inForm struct {
		Ship *shipping `form:"ship"`
	}
	for _, doc := range []string{``, `{}`, `{"ship":null}`} {
		require.Equal(t, inJSON{}, value(Bind[inJSON](newContext(t, postJSON(doc), Options{}))))
	}
	require.Nil(t, value(Bind[inForm](newContext(t, postForm("/", ""), Options{}))).Ship)
	for _, doc := range []string{`{"ship":{"to":{"name":"x"}}}`, `{"opt":{"to":{"name":"x"}}}`} {
		_, err := Bind[inJSON](newContext(t, postJSON(doc), Options{}))
		require.Contains(t, requireReason(t, err, ErrMissing, "is missing").Name, ".city")
	}
	_, err := Bind[inForm](newContext(t, postForm("/", "ship.to.name=x"), Options{}))
	require.Equal(t, "ship.city", requireReason(t, err, ErrMissing, "is missing").Name)
}
