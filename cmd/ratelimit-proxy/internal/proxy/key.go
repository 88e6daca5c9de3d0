package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// keyFunc returns a function that returns the key of a request. It uses the function address for {client.ip}.
func keyFunc(k config.Key, address ratelimit.KeyFunc) ratelimit.KeyFunc {
	var all []ratelimit.KeyFunc
	for _, p := range k {
		switch p.Kind {
		case "":
		case "client":
			all = append(all, address)
		case "header":
			all = append(all, ratelimit.ByHeader(p.Name))
		default:
			all = append(all, partFunc(p))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return ratelimit.ByAll(all...)
}

func partFunc(p config.KeyPart) ratelimit.KeyFunc {
	missing := fmt.Errorf("%w: no %s %q", ratelimit.ErrNoKey, p.Kind, p.Name)
	return func(_ context.Context, r *http.Request) (string, error) {
		switch v := partValue(p, r); {
		case v == "":
			return "", missing
		case p.Kind == "query", p.Kind == "cookie": // the value may be a credential
			sum := sha256.Sum256([]byte(v))
			return "sha256-" + base64.RawURLEncoding.EncodeToString(sum[:16]), nil
		default:
			return v, nil
		}
	}
}

// partValue returns the value of a key's part in a request, without hashing it. It returns "" if there is no value,
// or if there are several, since the upstream may read any of them.
func partValue(p config.KeyPart, r *http.Request) string {
	if values := partValues(p, r); len(values) == 1 {
		return values[0]
	}
	return ""
}

// partValues returns all values of a part in a request.
func partValues(p config.KeyPart, r *http.Request) (values []string) {
	switch p.Kind {
	case "header":
		values = append(values, r.Header[p.Name]...)
	case "cookie":
		for _, c := range r.CookiesNamed(p.Name) {
			values = append(values, c.Value)
		}
	case "query":
		values = r.URL.Query()[p.Name]
	case "host":
		return []string{hostOf(r)}
	case "path":
		return []string{cleanPath(r)}
	case "method":
		return []string{r.Method}
	}
	for i, v := range values {
		values[i] = p.Normalize(v)
	}
	return values
}

// checkKeys returns an error if a rule's key contains a query parameter or a cookie that servers may read
// differently.
func checkKeys(r *http.Request, rules []*rule) error {
	for _, rule := range rules {
		for _, p := range rule.key {
			switch {
			case p.Kind == "query" && !isPlainQuery(r.URL.RawQuery):
				return server.Errorf(http.StatusBadRequest, "The query is ambiguous.")
			case p.Kind == "cookie" && !isPlainCookie(r, p.Name):
				return server.Errorf(http.StatusBadRequest, "The cookie %s is ambiguous.", p.Name)
			}
		}
	}
	return nil
}

// isPlainQuery reports whether all servers read the same parameters in a query. Some servers also separate parameters
// at ";", end a name at NUL, or end the query at "#". net/http drops parameters that it can't decode.
func isPlainQuery(raw string) bool {
	_, err := url.ParseQuery(raw) // returns an error for ";"
	return err == nil && !strings.Contains(raw, "%00") && !strings.Contains(raw, "#")
}

// isPlainCookie reports whether all servers read the same values of a cookie. Some servers also separate cookies at a
// comma or a space, or decode quoted values. net/http drops invalid cookies, and all cookies if there are more than
// 3,000.
func isPlainCookie(r *http.Request, name string) bool {
	n := 0
	for _, line := range r.Header["Cookie"] {
		for pair := range strings.FieldsFuncSeq(line, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == ';' || c == ',' }) {
			if before, _, _ := strings.Cut(pair, "="); before == name {
				n++
			}
		}
	}
	read := r.CookiesNamed(name)
	return n == len(read) && !slices.ContainsFunc(read, func(c *http.Cookie) bool {
		return strings.ContainsAny(strings.TrimSpace(c.Value), " ,")
	})
}
