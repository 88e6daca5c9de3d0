package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

var (
	slow   = reqctx.NewKey[int]("slow")
	broken = reqctx.NewKey[int]("broken")
	odd    = reqctx.NewKey[int]("a b,c;d=é\"(x)/[~!")
	given  = reqctx.NewKey[int]("given")
	unused = reqctx.NewKey[int]("unused")
)

func provideTimed(srv *server.Server) {
	takes := func(d time.Duration, err error) reqctx.Prop[int] {
		return reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { <-time.After(d); return 0, err }}
	}
	reqctx.Provide(srv.Registry(), slow, takes(1500*time.Microsecond, nil))
	reqctx.Provide(srv.Registry(), broken, takes(2*time.Millisecond, errors.New("broken")))
	reqctx.Provide(srv.Registry(), odd, takes(time.Second, nil))
	reqctx.Provide(srv.Registry(), given, takes(time.Second, nil))
	reqctx.Provide(srv.Registry(), unused, takes(time.Second, nil))
}

func TestServerTiming(t *testing.T) {
	read := func(req *server.Request, keys ...reqctx.Key[int]) {
		for _, k := range keys {
			_, _ = k.Get(req.Context())
		}
	}
	for name, tt := range map[string]struct {
		h    server.HandlerFunc
		want []string
	}{
		"in the order of Provide": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, broken, slow); return nil },
			[]string{`slow;dur=1.5, broken;dur=2;desc="failed"`},
		},
		"names are made tokens": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, odd); return nil },
			[]string{`a_b_c_d____x___~!;dur=1000`},
		},
		"on a problem": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, slow); return server.Errorf(400, "") },
			[]string{`slow;dur=1.5`},
		},
		"only before the header": {
			func(w http.ResponseWriter, req *server.Request) error {
				read(req, slow)
				_, err := io.WriteString(w, "x")
				read(req, odd)
				return err
			},
			[]string{`slow;dur=1.5`},
		},
		"beside the handler's own": {
			func(w http.ResponseWriter, req *server.Request) error {
				w.Header().Set("Server-Timing", "cache")
				read(req, slow)
				return nil
			},
			[]string{"cache", `slow;dur=1.5`},
		},
		"what was set or is a handle took no time": {
			func(_ http.ResponseWriter, req *server.Request) error {
				req.Params()
				req.Session()
				return given.Set(req.Context(), 1)
			},
			nil,
		},
		"once, although the header is tried twice": {
			func(w http.ResponseWriter, req *server.Request) error {
				read(req, slow)
				_, _, err := http.NewResponseController(w).Hijack()
				require.ErrorIs(t, err, http.ErrNotSupported)
				return server.Errorf(400, "")
			},
			[]string{`slow;dur=1.5`},
		},
		"nothing": {func(http.ResponseWriter, *server.Request) error { return nil }, nil},
	} {
		for _, on := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, _ := newServer(t, server.Options{ServerTiming: on})
					provideTimed(srv)
					srv.HandleFunc("GET /", tt.h)
					got := ask(srv, "GET", "/").Header.Values("Server-Timing")
					if on {
						require.Equal(t, tt.want, got)
					} else {
						require.NotContains(t, strings.Join(got, ","), "dur=")
					}
				})
			})
		}
	}
}
