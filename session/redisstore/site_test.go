package redisstore_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// site is one of several servers that use the same Redis.
type site struct{ reg *reqctx.Registry }

func newSite(t *testing.T, c *redis.Client) site {
	m := must(session.New(newStore(t, c, patient), session.Options{}))
	reg := reqctx.NewRegistry(reqctx.Options{})
	session.Provide(reg, m)
	return site{reg}
}

func (s site) begin(t *testing.T, cookie *http.Cookie) *reqctx.Host {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	c := reqctx.New(t.Context(), s.reg)
	c.SetRequest(r)
	return c
}

// request runs a request and returns the cookie that the response sets, or nil.
func (s site) request(t *testing.T, cookie *http.Cookie, handle func(s session.Session) error) (*http.Cookie, error) {
	c := s.begin(t, cookie)
	defer c.Finish()
	sess, err := session.From(c)
	if err != nil {
		return nil, err
	}
	if err := handle(sess); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if err := c.Commit(http.StatusOK, w.Header()); err != nil {
		return nil, err
	}
	for _, cookie := range w.Result().Cookies() {
		return cookie, nil
	}
	return nil, nil
}

func login(s session.Session) error { return s.Set("user", "ada") }

// TestDumpContainsNoUsableSecret uses each value that is stored in Redis as the secret of a cookie. None must be valid.
func TestDumpContainsNoUsableSecret(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newSite(t, c)
	cookie := must(s.request(t, nil, func(s session.Session) error { return errors.Join(login(s), s.Bind("ada@example.com")) }))
	cookie, err := s.request(t, cookie, session.Session.Renew) // now Redis has two digests
	require.NoError(t, err)
	locator, text, ok := strings.Cut(cookie.Value, ".")
	require.True(t, ok)
	secret := must(base64.RawURLEncoding.DecodeString(text))

	keys := c.Keys(t.Context(), "*").Val()
	require.Len(t, keys, 2, "the session and the user's index")
	hash := c.HGetAll(t.Context(), "session:"+locator).Val()
	dump := fmt.Sprint(keys, hash)
	for _, key := range keys {
		dump += c.Dump(t.Context(), key).Val()
		require.NotContains(t, key, "ada")
	}
	for _, form := range []string{text, string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret)} {
		require.NotContains(t, dump, form)
	}
	user := func(cookie *http.Cookie) (user any) {
		must(s.request(t, cookie, func(s session.Session) error { user, err = s.Get("user"); return err }))
		return user
	}
	tried := 0
	for name, value := range hash {
		for _, guess := range []string{name, value} {
			if len(guess) == len(secret) {
				tried++
			}
			forged := *cookie
			forged.Value = locator + "." + base64.RawURLEncoding.EncodeToString([]byte(guess))
			require.Nil(t, user(&forged))
		}
	}
	require.Equal(t, 2, tried, "the digests were not among what was tried")
	require.Equal(t, "ada", user(cookie))
}

// TestRunningTaskDelaysNothing uses sessions in a request that has a task which waits until the end of the test.
func TestRunningTaskDelaysNothing(t *testing.T) {
	s := newSite(t, testhost.StartRedis(t).Client(nil))
	others := reqctx.NewKey[int]("others")
	reqctx.Provide(s.reg, others, reqctx.Prop[int]{
		Timeout: time.Minute, // makes Resolve run on a separate goroutine
		Resolve: func(ctx context.Context) (int, error) {
			sess, err := session.From(ctx)
			if err != nil {
				return 0, err
			}
			return sess.RevokeOthers()
		},
	})
	var cookie *http.Cookie
	for range 6 {
		var err error
		cookie, err = s.request(t, nil, func(s session.Session) error { return s.Bind("ada") })
		require.NoError(t, err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(cookie)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := reqctx.New(ctx, s.reg)
	c.SetRequest(r)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	require.NoError(t, c.Go("slow", func(context.Context) error { <-hold; return nil }))
	sess := must(session.From(c))
	require.Len(t, must(sess.List()), 6)
	require.Equal(t, 5, must(others.Get(c)))
	require.NoError(t, sess.Destroy())
	release()
	require.NoError(t, c.Finish())
}
