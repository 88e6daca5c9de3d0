package params

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

type patch struct {
	Name Opt[string]   `json:"name,omitzero"`
	Tags Opt[[]string] `json:"tags,omitzero"`
	Ship Opt[struct {
		City string `json:"city"`
	}] `json:"ship,omitzero"`
}

func TestOptDistinguishesAbsentFromNull(t *testing.T) {
	for doc, want := range map[string]patch{
		`{}`:                       {},
		`{"name":null}`:            {Name: Null[string]()},
		`{"name":""}`:              {Name: Some("")},
		`{"tags":[]}`:              {Tags: Some([]string{})},
		`{"tags":null,"name":"a"}`: {Tags: Null[[]string](), Name: Some("a")},
	} {
		require.Equal(t, want, value(Bind[patch](newContext(t, postJSON(doc), Options{}))), doc)
		var std patch
		require.NoError(t, json.Unmarshal([]byte(doc), &std))
		require.Equal(t, want, std, "encoding/json")
		require.JSONEq(t, doc, string(value(json.Marshal(want))))
	}
	got := value(Bind[patch](newContext(t, postJSON(`{"ship":{"city":"Rome"}}`), Options{})))
	ship, ok := got.Ship.Get()
	require.True(t, ok)
	require.Equal(t, "Rome", ship.City)

	list := errorsOf(t, failure(Bind[patch](newContext(t, postJSON(`{"ship":{"city":1},"name":2,"tags":[3]}`), Options{}))))
	require.Len(t, list, 3)
	require.Equal(t, "#/ship/city", list[2].Pointer())
	require.Error(t, json.Unmarshal([]byte(`{"name":2}`), &patch{}))
}

func TestOptAccessors(t *testing.T) {
	none, null, some := Opt[int]{}, Null[int](), Some(7)
	require.True(t, none.IsZero() && !none.IsNull())
	require.True(t, !null.IsZero() && null.IsNull())
	require.True(t, !some.IsZero() && !some.IsNull())
	require.Equal(t, []int{1, 1, 7}, []int{none.Or(1), null.Or(1), some.Or(1)})
	v, ok := some.Get()
	require.True(t, ok)
	require.Equal(t, 7, v)
	_, ok = null.Get()
	require.False(t, ok)
}
