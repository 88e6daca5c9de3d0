package session

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// traces returns the forms in which a text could contain a token.
func traces(tok token, secret []byte) []string {
	var all []string
	for _, b := range [][]byte{tok.locator[:], secret, tok.digest[:]} {
		decimal := strings.Trim(fmt.Sprint(b[:8]), "[]")
		all = append(all, string(b[:8]), hex.EncodeToString(b[:8]), strings.ToUpper(hex.EncodeToString(b[:8])),
			encoding.EncodeToString(b)[:10], decimal, strings.ReplaceAll(decimal, " ", ","))
		goSyntax := make([]string, 4)
		for i := range goSyntax {
			goSyntax[i] = fmt.Sprintf("%#v", b[i])
		}
		all = append(all, strings.Join(goSyntax, ", "))
	}
	return all
}

func requireNoTrace(t *testing.T, tokenText, text string) {
	t.Helper()
	tok, ok := parseToken(tokenText)
	require.True(t, ok)
	for _, trace := range append(traces(tok, secretOf(t, tokenText)), "hunter2", "[104 117 110 116", "68756e746572") {
		require.NotContains(t, text, trace)
	}
}

func TestTokensShowInNoFormat(t *testing.T) {
	memory, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	m, err := New(memory, Options{})
	require.NoError(t, err)
	tok, text := newToken(newLocator())
	delta := storage.Delta{
		Create: true, Locator: tok.locator, Digest: tok.digest, Limits: m.limits,
		Changes: map[string]storage.Change{"user": {Op: storage.OpSet, Value: []byte("hunter2")}},
	}
	require.NoError(t, memory.Commit(t.Context(), delta))
	hidden := storage.Value{Exists: true, Bytes: []byte("hunter2")}
	snap := &snapshot{exists: true, token: tok, record: storage.Record{Fields: map[string][]byte{"user": hidden.Bytes}}}
	c := reqctx.New(t.Context(), reqctx.NewRegistry(reqctx.Options{}))
	st := &state{m: m, c: &c.Context, writes: map[string]write{"user": {Change: delta.Changes["user"]}}, snap: snap}
	s := Session{ctx: c, state: st}
	info := Info{ID: infoID(tok.locator), lookup: func(string) storage.Value { return hidden }}
	entry := storage.Entry{Locator: tok.locator, Record: snap.record}

	for _, v := range []any{tok, &tok, tok.locator, tok.digest, delta, &delta, memory, snap, *snap, s, &s, st, m, storage.Record{}, info, entry, hidden, plan{text: text, delta: &delta}} {
		name := reflect.TypeOf(v).String()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c"} {
			requireNoTrace(t, text, fmt.Sprintf(verb, v))
			requireNoTrace(t, text, fmt.Sprintf(verb, []any{v}))
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v, "vs", []any{v})
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v, "vs", []any{v})
		requireNoTrace(t, text, log.String())
		data, err := json.Marshal(v)
		require.NoError(t, err, name)
		requireNoTrace(t, text, string(data))
		if str, ok := v.(fmt.Stringer); ok {
			requireNoTrace(t, text, str.String())
		}
	}
}

// TestTokensShowInNoLogOrError logs all values of a request whose save fails.
func TestTokensShowInNoLogOrError(t *testing.T) {
	var log bytes.Buffer
	memory, err := memstore.New(memstore.Options{MaxBytes: 2048})
	require.NoError(t, err)
	m, err := New(memory, Options{})
	require.NoError(t, err)
	reg := reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	Provide(reg, m)

	tok, text := newToken(newLocator())
	require.NoError(t, memory.Commit(t.Context(), storage.Delta{
		Create: true, Locator: tok.locator, Digest: tok.digest, Limits: m.limits,
		Changes: map[string]storage.Change{"broken": {Op: storage.OpSet, Value: []byte("{")}},
	}))
	c := reqctx.New(t.Context(), reg)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: m.opts.Cookie.withDefaults().Name, Value: text})
	c.SetRequest(r)
	s, err := From(c)
	require.NoError(t, err)
	_, err = s.Get("broken")
	require.NoError(t, err)
	loaded, err := reqctx.Get(c, "session")
	require.NoError(t, err)
	require.NoError(t, s.Set("big", strings.Repeat("x", 4096)), "the store has less room")
	saveErr := c.Commit(http.StatusOK, http.Header{})
	require.ErrorIs(t, saveErr, ErrTooLarge)
	c.Logger().Error("failed", "error", saveErr, "session", s, "loaded", loaded)
	require.NoError(t, c.Finish())

	require.Contains(t, log.String(), "broken")
	requireNoTrace(t, text, log.String()+fmt.Sprintf("%v %+v %#v %v", saveErr, saveErr, saveErr, loaded))
}
