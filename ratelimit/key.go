package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"path"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
)

// KeyFunc returns the text by which a request is counted: requests with the same text share a quota. It gets the
// request's properties in ctx, and may read them: a verified key is better than one that was only sent. ErrNoKey or ""
// means that the request has no such key; see [Policy]. On a raw connection, r has only the peer's address.
//
// A policy calls it once for a request. A key may have any bytes. A key of more than 128 bytes is replaced by its
// hash. A key that reads like such a hash gets "=" before it, and so does one that reads like an address and was not
// made by [ByIP] or [IPOptions].
type KeyFunc func(ctx context.Context, r *http.Request) (string, error)

// ByHeader counts by the value of a request header, such as "X-Api-Key". A request without it, with an empty one, or
// with several (another server may read another one) is ErrNoKey. The scheme of an Authorization header counts in
// lower case, and the spaces and tabs after it as one space.
//
// Only a hash is kept, as the value may be a credential. It has no secret: a reader of the store can test guessed
// passwords. A caller who makes up values that nobody verifies has a quota for each of them. Base64, as in Basic
// authentication, has several spellings of a value unless it is decoded strictly.
func ByHeader(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	missing := fmt.Errorf("%w: no header %q", ErrNoKey, name) // once: it is common if there is a fallback
	return func(_ context.Context, r *http.Request) (string, error) {
		lines := r.Header[name]
		if len(lines) > 1 {
			return "", fmt.Errorf("%w: %d headers %q", ErrNoKey, len(lines), name)
		}
		value := textproto.TrimString(r.Header.Get(name)) // HTTP/2 may have spaces around it
		if value == "" {
			return "", missing
		}
		return hashHeader(name, value), nil
	}
}

// ByCookie counts by a hash of a cookie's value; see [ByHeader]. If there are several with the name, the first counts.
// A request without it, or with an empty one, is ErrNoKey.
func ByCookie(name string) KeyFunc {
	missing := fmt.Errorf("%w: no cookie %q", ErrNoKey, name)
	return func(_ context.Context, r *http.Request) (string, error) {
		c, err := r.Cookie(name)
		if err != nil || c.Value == "" {
			return "", missing
		}
		return hashParts("cookie", name, c.Value), nil
	}
}

// ByPath counts by the pattern of [http.ServeMux] that the request has matched, such as "GET /items/{id}", so that all
// items have one quota. Without a pattern, as with another router, it counts by the cleaned path, of which callers can
// make up any number. A request with neither is ErrNoKey. Alone, ByPath limits all callers together; see [ByAll].
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

// ByAll counts by several keys together: ByAll(ByIP(), ByPath()) is a quota for each address on each route. A request
// that lacks one of them is ErrNoKey. ByAll panics if keys is empty or has a nil.
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
// text gets every value that the property can have, also a nil pointer; "" is ErrNoKey. An error of the property
// becomes the error of the take. With a user from session.RequireUser, a request without login is a 401.
func ByProperty[T any](key reqctx.Key[T], text func(T) string) KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		v, err := key.Get(ctx)
		if err != nil {
			return "", err
		}
		return text(v), nil
	}
}

// FirstOf counts by the first key that the request has: FirstOf(ByHeader("X-Api-Key"), ByIP()). Keys of different
// functions are different. A request that has none is ErrNoKey; any other error ends the search. FirstOf panics if
// keys is empty or has a nil.
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

// hashParts returns a hash of parts. Different lists of parts are different inputs of the hash.
func hashParts(parts ...string) string {
	b := make([]byte, 0, 256)
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return hash128(b)
}

// hashHeader returns a hash of a header with a canonical name. For Authorization, see [ByHeader].
func hashHeader(name, value string) string {
	b := appendPart(appendPart(make([]byte, 0, 256), "header"), name)
	if name == "Authorization" {
		return hash128(appendCredentials(b, value))
	}
	return hash128(appendPart(b, value))
}

func appendCredentials(b []byte, credentials string) []byte {
	scheme, rest := credentials, ""
	if i := strings.IndexAny(credentials, " \t"); i >= 0 {
		scheme, rest = credentials[:i], strings.TrimLeft(credentials[i:], " \t")
	}
	b = binary.BigEndian.AppendUint64(b, uint64(len(scheme)+1+len(rest)))
	for _, c := range []byte(scheme) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return append(append(b, ' '), rest...)
}

func appendPart(b []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// hash128 returns 128 bits of SHA-256.
func hash128(b []byte) string {
	sum := sha256.Sum256(b)
	const prefix = "sha256-"
	var text [len(prefix) + 22]byte
	copy(text[:], prefix)
	base64.RawURLEncoding.Encode(text[len(prefix):], sum[:16])
	return string(text[:])
}
