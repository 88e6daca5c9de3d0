package redisstore_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestForeignKeyIsLeftAlone checks that operations fail and change nothing if the key of a token or a lease holds
// something else.
func TestForeignKeyIsLeftAlone(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, time.Minute))
	token := only(t, c)
	ours := func(field string, change func(name string) error) func(name string) {
		return func(name string) {
			if name == token {
				require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, time.Minute))
			} else {
				must(s.Acquire(t.Context(), "s3cret-user", request(1)))
			}
			require.NoError(t, change(name), field)
		}
	}
	without := func(field string) func(name string) {
		return ours(field, func(name string) error { return c.HDel(t.Context(), name, field).Err() })
	}
	with := func(field, value string) func(name string) {
		return ours(field, func(name string) error { return c.HSet(t.Context(), name, field, value).Err() })
	}
	both := []string{token, "coord:lease:s3cret-user"}
	for name, tt := range map[string]struct {
		put func(name string)
		of  []string
	}{
		"string":              {func(name string) { c.Set(t.Context(), name, "x", 0) }, both},
		"list":                {func(name string) { c.RPush(t.Context(), name, "x") }, both},
		"another hash":        {func(name string) { c.HSet(t.Context(), name, "user", "ada") }, both},
		"no issue":            {without("issued"), both[:1]},
		"no end":              {without("forgotten"), both[:1]},
		"word for a time":     {with("expires", "nan"), both[:1]},
		"endless time":        {with("forgotten", strings.Repeat("9", 400)), both[:1]},
		"used without a name": {with("used", "1"), both[:1]},
		"used at no time":     {with("by", "ada"), both[:1]},
		"revoked, a word":     {with("revoked", "yes"), both[:1]},
		"no number":           {without("number"), both[1:]},
		"no beginning":        {without("since"), both[1:]},
		"negative number":     {with("number", "-1"), both[1:]},
		"held, no end":        {without("until"), both[1:]},
		"held without a name": {without("name"), both[1:]},
		"fraction of time":    {with("until", "1.5"), both[1:]},
	} {
		for _, k := range tt.of {
			require.NoError(t, c.FlushAll(t.Context()).Err())
			tt.put(k)
			before := testhost.Content(t, c, k)
			for operation, err := range everything(t.Context(), s) {
				ofToken := operation == "issue" || operation == "use" || operation == "inspect" || operation == "revoke"
				if ofToken == (k == token) {
					require.ErrorIs(t, err, redisstore.ErrKeyType, "%s: %s", name, operation)
					require.ErrorIs(t, err, coord.ErrStore)
				}
			}
			require.Equal(t, before, testhost.Content(t, c, k), name)
		}
	}
}

func TestErrorsDontQuote(t *testing.T) {
	quote := "coord:lease:s3cret-user coord:token:" + strings.Repeat("s3cret", 5)
	replies := testhost.QuotingReplies(quote, "s3cret")
	maps.Copy(replies, map[string]string{
		"token of words":  "*8\r\n" + strings.Repeat("+"+quote+"\r\n", 8),
		"unknown state":   "*8\r\n:9\r\n+\r\n:0\r\n:0\r\n:0\r\n:0\r\n+\r\n:0\r\n",
		"lease of words":  "*5\r\n" + strings.Repeat("+"+quote+"\r\n", 5),
		"unknown verdict": "*5\r\n:9\r\n:0\r\n:0\r\n+\r\n:0\r\n",
		"a word":          "*1\r\n+x\r\n",
		"unknown status":  "*1\r\n:9\r\n",
	})
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, testhost.FixedReplyClient(t, reply), redisstore.Options{})
			for operation, err := range fails(t, s) {
				for e := err; e != nil; e = errors.Unwrap(e) {
					require.NotContains(t, e.Error(), "s3cret", operation)
				}
			}
		})
	}
}
