package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"path"
	"strconv"

	"github.com/lazyreq/lazyreq/ratelimit/internal/keyhash"
	"github.com/lazyreq/lazyreq/reqctx"
)

// KeyFunc returns the text by which a request is counted: requests with the same text share a quota.
// It gets the request's properties in ctx, and may read them: a verified key is better than one that
// was only sent. ErrNoKey or "" means that the request has no such key; see [Policy]. On a raw
// connection, r has only the peer's address.
//
// A policy calls it once for a request. A key may have any bytes. One of more than 128 is replaced
// by its hash; one that reads like such a hash, or like an address and isn't made by [ByIP] or
// [IPOptions], gets "=" before it.
type KeyFunc func(ctx context.Context, r *http.Request) (string, error)

// ByHeader counts by the value of a request header, such as "X-Api-Key". A request without it,
// with an empty one, or with several (another server may read another one) is ErrNoKey. The scheme
// of an Authorization header counts in lower case, and the spaces and tabs after it as one space.
//
// Only a hash is kept, as the value may be a credential. It has no secret: a reader of the store
// can test guessed passwords. Values that were not verified can be made up: a caller with many of
// them has many quotas. Base64, as in Basic authentication, has several spellings of a value
// if it isn't decoded strictly.
func ByHeader(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	missing := noKeyError("header", name)
	return func(_ context.Context, r *http.Request) (string, error) {
		lines := r.Header[name]
		if len(lines) > 1 {
			return "", fmt.Errorf("%w: %d headers %q", ErrNoKey, len(lines), name)
		}
		value := textproto.TrimString(r.Header.Get(name)) // HTTP/2 may have spaces around it
		if value == "" {
			return "", missing
		}
		return keyhash.Header(name, value), nil
	}
}

// ByCookie counts by a hash of a cookie's value; see [ByHeader]. Of several with the name it is the
// first. A request without it, or with an empty one, is ErrNoKey.
func ByCookie(name string) KeyFunc {
	missing := noKeyError("cookie", name)
	return func(_ context.Context, r *http.Request) (string, error) {
		c, err := r.Cookie(name)
		if err != nil || c.Value == "" {
			return "", missing
		}
		return keyhash.Parts("cookie", name, c.Value), nil
	}
}

// noKeyError returns the error of requests without a value. It is made once, because such requests
// are common where there is a fallback.
func noKeyError(kind, name string) error { return fmt.Errorf("%w: no %s %q", ErrNoKey, kind, name) }

// ByPath counts by the pattern of [http.ServeMux] that the request has matched, such as
// "GET /items/{id}", so that all items have one quota. Without one (outside of the mux, or with
// another router) it is the cleaned path, and callers can make up more. A request with neither is
// ErrNoKey. Alone it limits all callers together; see [ByAll].
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

// ByAll counts by several keys together: ByAll(ByIP(), ByPath()) is a quota for each address on each
// route. A request that lacks one of them is ErrNoKey. It panics if keys is empty or has a nil.
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
// text gets every value that the property can have, also a nil pointer; "" is ErrNoKey. An error
// of the property is the take's: with a user who is required by session.RequireUser, a request
// without login is a 401.
func ByProperty[T any](key reqctx.Key[T], text func(T) string) KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		v, err := key.Get(ctx)
		if err != nil {
			return "", err
		}
		return text(v), nil
	}
}

// FirstOf counts by the first key that the request has: FirstOf(ByHeader("X-Api-Key"), ByIP()).
// Different functions' keys differ. A request that has none is ErrNoKey; any other error ends the
// search. It panics if keys is empty or has a nil.
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
