package params

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type order struct {
	User  string    `json:"user"`
	Count int8      `json:"count"`
	Price float32   `json:"price"`
	Paid  bool      `json:"paid"`
	Tags  []string  `json:"tags"`
	At    time.Time `json:"at"`
	Ship  struct {
		City string `json:"city"`
	} `json:"ship"`
	Picky picky `json:"picky"`
}

var errPicky = errors.New("internal words")

type picky struct{}

func (picky) UnmarshalJSON([]byte) error { return errPicky }

func TestDecodeJSON(t *testing.T) {
	c := newContext(t, postJSON(` {"user":"ada","count":3,"tags":["a"],"ship":{"city":"Paris"},"more":1} `), Options{})
	got := value(JSON[order](c))
	want := order{User: "ada", Count: 3, Tags: []string{"a"}}
	want.Ship.City = "Paris"
	require.Equal(t, want, got)

	p := value(From(c))
	var again map[string]any
	require.NoError(t, p.DecodeJSON(&again), "decoding again is allowed")
	require.Equal(t, "ada", again["user"])
	require.Equal(t, "ada", value(p.String("user")))
}

func TestDecodeReportsTheField(t *testing.T) {
	for doc, want := range map[string][2]string{
		`{"user":1}`:             {"user", "must be a string"},
		`{"count":300}`:          {"count", "is out of range"},
		`{"count":1.5}`:          {"count", "must be a whole number"},
		`{"ship":{"city":1}}`:    {"ship.city", "must be a string"},
		`[]`:                     {"", "must be an object"},
		`{"user":"a","picky":1}`: {"picky", "has a value that can't be decoded"},
	} {
		got, err := JSON[order](newContext(t, postJSON(doc), Options{}))
		e := requireReason(t, err, ErrMalformed, want[1])
		require.Equal(t, want[0], e.Name, doc)
		require.Equal(t, order{}, got, "nothing half-filled")
		require.NotContains(t, e.Error(), "params.order", "no Go type in what the client reads")
		require.NotContains(t, e.Error(), "internal words")
	}
	require.ErrorIs(t, failure(JSON[order](newContext(t, postJSON(`{"picky":1}`), Options{}))), errPicky)
}

func TestDecodeEmptyBody(t *testing.T) {
	for _, doc := range []string{"", " \n"} {
		_, err := JSON[any](newContext(t, postJSON(doc), Options{}))
		requireReason(t, err, ErrMissing, "the request body is empty, but must be a JSON value")
	}
	require.ErrorIs(t, failure(JSON[any](newContext(t, getRequest(""), Options{}))), ErrMissing)
}

func TestDecodeMisuseIsNoFaultOfTheClient(t *testing.T) {
	p := paramsOf(t, postJSON(`{}`), Options{})
	for _, v := range []any{nil, order{}, (*order)(nil)} {
		err := p.DecodeJSON(v)
		require.Error(t, err)
		var e *Error
		require.False(t, errors.As(err, &e))
	}
}
