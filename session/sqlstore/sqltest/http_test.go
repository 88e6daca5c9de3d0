package sqltest

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/sqlstore"
)

var visits = session.NewCounter("visits")

// newServer starts a server that keeps its sessions in the database, through its own connections.
func newServer(t *testing.T, driver, dsn string, dialect sqlstore.Dialect) *httptest.Server {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(16)
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: dialect, Timeout: time.Minute})
	require.NoError(t, err)
	srv, err := server.New(server.Options{
		SessionStore: store,
		Session:      session.Options{Cookie: session.Cookie{Insecure: true}},
	})
	require.NoError(t, err)
	srv.HandleFunc("POST /login", func(w http.ResponseWriter, r *server.Request) error {
		return r.Session().Bind(r.FormValue("user"))
	})
	srv.HandleFunc("POST /visit", func(w http.ResponseWriter, r *server.Request) error {
		if _, err := session.RequireUser(r); err != nil {
			return err
		}
		return visits.Add(r, 1)
	})
	srv.HandleFunc("GET /visits", func(w http.ResponseWriter, r *server.Request) error {
		n, err := visits.Get(r)
		fmt.Fprint(w, n)
		return err
	})
	srv.HandleFunc("POST /logout", func(w http.ResponseWriter, r *server.Request) error {
		return r.Session().Destroy()
	})
	ts := httptest.NewServer(srv)
	t.Cleanup(ts.Close)
	return ts
}

// client returns a client with its own cookies.
func client(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar}
}

func post(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	res, err := c.Post(url, "", nil)
	require.NoError(t, err)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// Many clients use a session through two servers and log out meanwhile. No acknowledged visit is lost, and after the
// logout no request finds the session.
func TestTwoServers(t *testing.T) {
	sqlite := openSQLiteFile(t)
	postgres := startPostgreSQL(t).dsn()
	create(t, "pgx", postgres, sqlstore.PostgreSQL)
	for name, open := range map[string]func() *httptest.Server{
		"SQLite":     func() *httptest.Server { return newServer(t, "sqlite", sqlite, sqlstore.SQLite) },
		"PostgreSQL": func() *httptest.Server { return newServer(t, "pgx", postgres, sqlstore.PostgreSQL) },
	} {
		t.Run(name, func(t *testing.T) {
			servers := []*httptest.Server{open(), open()}
			for user := range 4 {
				c := client(t)
				require.Equal(t, 200, post(t, c, fmt.Sprintf("%s/login?user=%d", servers[0].URL, user)))
				visitAndLogOut(t, c, servers)
			}
		})
	}
}

func visitAndLogOut(t *testing.T, c *http.Client, servers []*httptest.Server) {
	t.Helper()
	const writers = 250
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if status := post(t, c, servers[i%2].URL+"/visit"); status != 200 {
				t.Errorf("a visit has the status %d", status)
			}
		})
	}
	wg.Wait()
	res, err := c.Get(servers[0].URL + "/visits")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, fmt.Sprint(writers), string(body))

	cookies := *c // a logout deletes the cookie in the client's jar, but not in this copy
	cookies.Jar = fixedJar(c.Jar.Cookies(res.Request.URL))
	var loggedOut atomic.Bool
	for i := range writers {
		wg.Go(func() {
			if i == writers/2 {
				if status := post(t, &cookies, servers[0].URL+"/logout"); status != 200 {
					t.Errorf("the logout has the status %d", status)
				}
				loggedOut.Store(true)
				return
			}
			after := loggedOut.Load()
			switch status := post(t, &cookies, servers[i%2].URL+"/visit"); {
			case after && status != 401:
				t.Errorf("a visit after the logout has the status %d", status)
			case status != 200 && status != 401 && status != 409:
				t.Errorf("a visit has the status %d", status)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 401, post(t, &cookies, servers[1].URL+"/visit"))
}

// fixedJar is a cookie jar that always sends the same cookies.
type fixedJar []*http.Cookie

func (fixedJar) SetCookies(*url.URL, []*http.Cookie) {}
func (j fixedJar) Cookies(*url.URL) []*http.Cookie   { return j }
