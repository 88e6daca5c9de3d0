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

// KeyFunc returns the text by which a request is counted. Requests with the same text share a quota. The function may
// read the request's properties from ctx, because a verified value is a better key than a value that the client only
// sent. ErrNoKey or "" means that the request has no such key; see [Policy]. On a raw connection, r has only the
// peer's address.
//
// A policy calls the function once for a request. A key may contain any bytes. A key of more than 128 bytes is
// replaced by its hash. A key that looks like such a hash gets the prefix "=". So does a key that looks like an
// address and was not made by [ByIP] or [IPOptions].
type KeyFunc func(ctx context.Context, r *http.Request) (string, error)

// ByHeader counts by the value of a request header, such as "X-Api-Key". The error is ErrNoKey if the header is
// missing, empty, or present more than once (another server may read another line). In an Authorization header, the
// scheme counts as lower case, and the spaces and tabs after it count as one space.
//
// Only a hash of the value is kept, because the value may be a credential. The hash contains no secret, so a reader
// of the store can test guessed passwords. If the application does not verify the value, a caller gets a new quota
// for each value that it makes up. A value in Base64, as in Basic authentication, has several spellings unless it is decoded
// strictly.
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
		if name == "Authorization" {
			value = normalizeCredentials(value)
		}
		return hashParts("header", name, value), nil
	}
}

// ByCookie counts by a hash of a cookie's value; see [ByHeader]. If several cookies have the name, the first one
// counts. If the cookie is missing or empty, the error is ErrNoKey.
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

// ByPath counts by the pattern of [http.ServeMux] that the request has matched, such as "GET /items/{id}", so that
// all items have one quota. Without a pattern, for example with another router, it counts by the cleaned path. Then
// callers can make up any number of keys. If the request has neither, the error is ErrNoKey. By itself, ByPath limits
// all callers together; see [ByAll].
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

// ByAll counts by several keys together. For example, ByAll(ByIP(), ByPath()) gives each address a quota on each
// route. If the request lacks one of the keys, the error is ErrNoKey. ByAll panics if keys is empty or contains nil.
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
// text gets every value that the property can have, including a nil pointer. If text returns "", the error is
// ErrNoKey. An error of the property becomes the error of the take. So if the property calls session.RequireUser, a
// request without a login is answered with a 401.
func ByProperty[T any](key reqctx.Key[T], text func(T) string) KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		v, err := key.Get(ctx)
		if err != nil {
			return "", err
		}
		return text(v), nil
	}
}

// FirstOf counts by the first key that the request has, as in FirstOf(ByHeader("X-Api-Key"), ByIP()). Keys of
// different functions are different. If the request has none of the keys, the error is ErrNoKey. Any other error ends
// the search. FirstOf panics if keys is empty or contains nil.
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

// normalizeCredentials returns the value of an Authorization header with its scheme in lower case and one space after it.
func normalizeCredentials(value string) string {
	scheme, rest := value, ""
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		scheme, rest = value[:i], strings.TrimLeft(value[i:], " \t")
	}
	lower := []byte(scheme)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' { // other bytes stay, so that different credentials have different keys
			lower[i] += 'a' - 'A'
		}
	}
	return string(lower) + " " + rest
}

// hashParts returns 128 bits of a SHA-256 hash of parts. Different lists of parts are different inputs of the hash.
func hashParts(parts ...string) string {
	b := make([]byte, 0, 256)
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return "sha256-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}
