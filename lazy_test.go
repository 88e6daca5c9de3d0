package lazyreq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ladder maps each folder to its level. A package imports only packages of its own folder or of a lower level.
var ladder = map[string]int{
	"lazy":      1,
	"reqctx":    2,
	"params":    3,
	"session":   3,
	"ratelimit": 3,
	"coord":     3,
	"server":    4,
	"cmd":       5,
	"examples":  6,
}

// goRedis are the packages of the library that talk to Redis.
var goRedis = []string{"session/redisstore", "ratelimit/redisstore", "coord/redisstore", "internal/redispipe"}

// openTelemetryAPI lists the OpenTelemetry packages that package telemetry may import. The SDK is not among them.
var openTelemetryAPI = []string{
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
	"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
}

// forTests lists packages that only tests import. They may import any package.
var forTests = []string{
	"cmd/ratelimit-proxy/internal/nginxtest",
	"internal/doccheck", "internal/faultproxy", "internal/testenv", "internal/testhost", "internal/torture",
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsGoDownTheLadder(t *testing.T) {
	const module = "github.com/lazyreq/lazyreq"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var pkg goPackage
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		from := strings.TrimPrefix(strings.TrimPrefix(pkg.ImportPath, module), "/")
		for _, imported := range pkg.Imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours {
				checkStep(t, from, to)
			} else {
				checkOutside(t, from, imported)
			}
		}
	}
	require.Greater(t, seen, len(ladder)/2, "go list found the packages")
}

// folder returns the first element of a package's path.
func folder(pkg string) string { first, _, _ := strings.Cut(pkg, "/"); return first }

func checkStep(t *testing.T, from, to string) {
	if !slices.Contains(forTests, from) {
		require.NotContainsf(t, forTests, to, "%s imports a package for tests", from)
	}
	a, b := folder(from), folder(to)
	switch {
	case a == b, b == "internal":
		return // within one folder
	case a == "internal":
		require.Equalf(t, "lazy", b, "%s imports %s", from, to)
		return
	}
	require.Containsf(t, ladder, a, "%s has no step on the ladder", from)
	require.Greaterf(t, ladder[a], ladder[b], "%s (step %d) imports %s (step %d)", from, ladder[a], to, ladder[b])
}

func checkOutside(t *testing.T, from, imported string) {
	if !strings.Contains(folder(imported), ".") {
		return // the standard library
	}
	if strings.HasPrefix(imported, "go.opentelemetry.io/") {
		require.Containsf(t, openTelemetryAPI, imported, "%s imports %s, which is not the API", from, imported)
		require.Equalf(t, "server/telemetry", from, "%s imports %s", from, imported)
		return
	}
	switch {
	case slices.Contains(forTests, from), ladder[folder(from)] > 4: // programs
	case strings.HasPrefix(imported, "golang.org/x/sync/"):
	case strings.HasPrefix(imported, "github.com/redis/go-redis/v9"):
		require.Truef(t, slices.Contains(goRedis, from), "%s imports %s", from, imported)
	case strings.HasPrefix(imported, "github.com/sony/gobreaker/v2"):
		require.Equalf(t, "ratelimit/layer", from, "%s imports %s", from, imported)
	case strings.HasPrefix(imported, "github.com/go-json-experiment/json"):
		require.Equalf(t, "params", from, "%s imports %s", from, imported)
	default:
		require.Failf(t, "library packages have no other dependencies", "%s imports %s", from, imported)
	}
}

// member is a property of the application below.
type member struct{ Name string }

var (
	currentMember = reqctx.NewKey[*member]("member")
	memberName    = session.NewField[string]("name")
)

// TestPackagesTogether runs a small application over a real connection: a login,
// a property that reads the session, a limited search, and a page that touches
// nothing.
func TestPackagesTogether(t *testing.T) {
	var loads, closed atomic.Int32
	search := ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(3))
	srv, err := server.New(server.Options{
		Session:      session.Options{Cookie: session.Cookie{Insecure: true}}, // plain HTTP
		RateLimits:   []*ratelimit.Policy{search},
		ServerTiming: true,
	})
	require.NoError(t, err)

	// This property is a function that reads another property.
	reqctx.Provide(srv.Registry(), currentMember, reqctx.Prop[*member]{
		Resolve: func(ctx context.Context) (*member, error) {
			loads.Add(1)
			name, err := memberName.Get(ctx)
			if err != nil || name == "" {
				return nil, err
			}
			return &member{name}, nil
		},
		Close: func(context.Context, *member, error) error { closed.Add(1); return nil },
	})
	srv.HandleFunc("POST /login", func(w http.ResponseWriter, req *server.Request) error {
		name, err := req.Params().Form().String("name")
		if err != nil {
			return err
		}
		if err := req.Session().Renew(); err != nil {
			return err
		}
		return memberName.Set(req.Context(), name)
	})
	srv.HandleFunc("GET /hello/{greeting}", func(w http.ResponseWriter, req *server.Request) error {
		// The handler reads the property twice, once by name. It is resolved once.
		v, err := req.Get("member")
		if err != nil {
			return err
		}
		m, err := currentMember.Get(req.Context())
		if err != nil {
			return err
		}
		if m == nil || v.(*member) != m {
			return server.Errorf(http.StatusUnauthorized, "Log in first.")
		}
		greeting, err := req.Params().Path().String("greeting")
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, greeting+", "+m.Name)
		return err
	})
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		for range 2 { // the second Take of a request is not charged
			res, err := req.RateLimit().Take()
			if err != nil {
				return err
			}
			if err := res.Err(); err != nil {
				return err
			}
		}
		n, err := req.RateLimit().Count()
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(n)
	})
	srv.HandleFunc("GET /fast", func(w http.ResponseWriter, req *server.Request) error { return nil })

	url, client := serve(t, srv)

	// A handler that reads no property adds nothing to the response.
	res, body := get(t, client, url+"/fast")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Empty(t, body)
	for _, field := range []string{"Set-Cookie", "Vary", "Server-Timing", "RateLimit"} {
		require.Empty(t, res.Header.Values(field), field)
	}

	// A client that is not logged in gets a problem, and no session begins.
	res, body = get(t, client, url+"/hello/hi")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.JSONEq(t, `{"status":401,"title":"Unauthorized","detail":"Log in first."}`, body)
	require.Empty(t, res.Header.Values("Set-Cookie"))
	require.Equal(t, "Cookie", res.Header.Get("Vary"))

	res, err = client.Post(url+"/login", "application/x-www-form-urlencoded", strings.NewReader("name=Ada"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Len(t, res.Cookies(), 1)

	loads.Store(0)
	res, body = get(t, client, url+"/hello/Good%20morning")
	require.Equal(t, "Good morning, Ada", body)
	require.EqualValues(t, 1, loads.Load())
	require.Contains(t, res.Header.Get("Server-Timing"), "member;dur=")

	// The limit is three searches a minute.
	for i := 1; i <= 4; i++ {
		res, body = get(t, client, url+"/search")
		require.Equal(t, `"search";q=3;w=60`, res.Header.Get("RateLimit-Policy"))
		if i <= 3 {
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, i, decode[int](t, body))
		}
	}
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	require.Equal(t, []any{"search"}, decode[map[string]any](t, body)["violated-policies"])

	require.NoError(t, srv.Shutdown(t.Context()))
	require.EqualValues(t, 2, closed.Load(), "what was resolved was closed")
}

// serve runs srv on a free port of this machine until the test ends.
func serve(t *testing.T, srv *server.Server) (url string, client *http.Client) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return "http://" + l.Addr().String(), &http.Client{Transport: transport, Jar: jar}
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	res, err := client.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

func decode[T any](t *testing.T, body string) (v T) {
	require.NoErrorf(t, json.Unmarshal([]byte(body), &v), "%s", body)
	return v
}
