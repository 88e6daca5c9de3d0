package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/lazyreq/lazyreq/reqctx"
)

// ByPath counts by what the request is for: the pattern of [http.ServeMux] that it has
// matched, such as "GET /items/{id}", so that all items have one quota and callers
// cannot make up more. Without one (outside of the mux, or with another router) it is
// the path itself, cleaned of "//", "." and ".."; there, each path that a caller thinks
// of has a quota of its own. A request with neither is ErrNoKey.
//
// Alone it limits all callers together; see [ByAll].
func ByPath() KeyFunc {
	return func(_ context.Context, r *http.Request) (string, error) {
		switch {
		case r.Pattern != "":
			return r.Pattern, nil
		case r.URL == nil || r.URL.Path == "":
			return "", fmt.Errorf("%w: no path", ErrNoKey)
		}
		return path.Clean(r.URL.Path), nil
	}
}

// ByAll counts by several things together: ByAll(ByIP(), ByPath()) is a quota for each
// address on each route. A request that lacks one of them is ErrNoKey. Different parts
// never read the same together. It panics if keys is empty or has a nil.
func ByAll(keys ...KeyFunc) KeyFunc {
	checkKeys("ByAll", keys)
	return func(ctx context.Context, r *http.Request) (string, error) {
		var b []byte
		for _, key := range keys {
			part, err := key(ctx, r)
			switch {
			case err != nil:
				return "", err
			case part == "":
				return "", ErrNoKey
			}
			b = strconv.AppendInt(b, int64(len(part)), 10)
			b = append(append(append(b, ':'), part...), ',')
		}
		return string(b), nil
	}
}

// ByProperty counts by a property of the request, such as its user:
//
//	ratelimit.ByProperty(User, func(u *user) string { return u.ID })
//
// text gets every value that the property can have, also a nil pointer. A request for which it
// returns "" is ErrNoKey, so that a [Policy.Fallback] or the next key of [FirstOf] counts it.
// An error of the property is the take's: with a user who is required by session.RequireUser,
// a request without login is a 401.
func ByProperty[T any](key reqctx.Key[T], text func(T) string) KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		v, err := key.Get(ctx)
		if err != nil {
			return "", err
		}
		return text(v), nil
	}
}

// FirstOf counts by the first thing that the request has: FirstOf(ByHeader("X-Api-Key"),
// ByIP()). What the one finds never reads like what another finds. A request that has
// none is ErrNoKey; any other error ends the search. It panics if keys is empty or has a
// nil.
func FirstOf(keys ...KeyFunc) KeyFunc {
	checkKeys("FirstOf", keys)
	return func(ctx context.Context, r *http.Request) (string, error) {
		var missing error = ErrNoKey
		for i, key := range keys {
			part, err := key(ctx, r)
			switch {
			case err == nil && part != "":
				return strconv.Itoa(i) + ":" + part, nil
			case err != nil && !errors.Is(err, ErrNoKey):
				return "", err
			case err != nil:
				missing = err
			}
		}
		return "", missing
	}
}

func checkKeys(name string, keys []KeyFunc) {
	if len(keys) == 0 {
		panic("ratelimit: " + name + " of nothing")
	}
	for i, key := range keys {
		if key == nil {
			panic(fmt.Sprintf("ratelimit: %s: key %d is nil", name, i))
		}
	}
}
