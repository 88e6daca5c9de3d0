package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// Key is a rule's key, read from a template such as "{client.ip} {path}".
type Key []KeyPart

// KeyPart is a part of a [Key]: a value of the request, or text between two values.
type KeyPart struct {
	Kind string // client, header, cookie, query, host, path or method; "" for text
	Name string // name of the header, cookie or query parameter; or the text itself
}

// ParseKey reads a key. It returns an error if the key contains no value of the request.
func ParseKey(text string) (Key, error) {
	var k Key
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			k = append(k, KeyPart{Name: before})
		}
		if !found {
			break
		}
		inner, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%q has no } for its {", text)
		}
		p, err := parseKeyPart(inner)
		if err != nil {
			return nil, err
		}
		k, rest = append(k, p), behind
	}
	if !slices.ContainsFunc(k, func(p KeyPart) bool { return p.Kind != "" }) {
		return nil, fmt.Errorf("%q is the same for all requests, want a value such as {client.ip} in it", text)
	}
	return k, nil
}

func parseKeyPart(inner string) (KeyPart, error) {
	kind, name, named := strings.Cut(inner, ".")
	valid := false
	switch kind {
	case "client":
		valid = name == "ip"
	case "header":
		name, valid = textproto.CanonicalMIMEHeaderKey(name), isToken(name)
	case "cookie":
		valid = isToken(name)
	case "query":
		if escape.MatchString(name) {
			return KeyPart{}, fmt.Errorf("{%s} has an escape, and names of parameters are compared decoded: want the character itself", inner)
		}
		valid = name != ""
	case "host", "path", "method":
		valid = !named
	}
	if !valid {
		return KeyPart{}, fmt.Errorf("{%s} is unknown, want {client.ip}, {header.NAME}, {cookie.NAME}, {query.NAME}, {host}, {path} or {method}", inner)
	}
	return KeyPart{kind, name}, nil
}

// isToken reports whether a header or a cookie may have this name (RFC 9110).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// Has reports whether the key has a part of this kind.
func (k Key) Has(kind string) bool {
	return slices.ContainsFunc(k, func(p KeyPart) bool { return p.Kind == kind })
}

// Only returns the part of the key that is a value of the request. It returns false if there are several.
func (k Key) Only() (p KeyPart, ok bool) {
	for _, q := range k {
		switch {
		case q.Kind == "":
		case ok:
			return KeyPart{}, false
		default:
			p, ok = q, true
		}
	}
	return p, ok
}

// Normalize returns the form in which values of the part are compared. Spellings that some server reads as the same
// value have the same form.
func (p KeyPart) Normalize(value string) string {
	switch p.Kind {
	case "host":
		host, _ := ParseHost(value)
		return host
	case "path":
		return path.Clean("/" + value)
	case "cookie": // many servers trim and decode it
		value = strings.TrimSpace(value)
		if decoded, err := url.PathUnescape(value); err == nil {
			return decoded
		}
	case "query": // not every server reads "+" as a space
		return strings.ReplaceAll(value, "+", " ")
	case "header":
		if p.Name == "Authorization" { // as ratelimit.ByHeader does
			i := strings.IndexAny(value, " \t")
			if i < 0 {
				return strings.ToLower(value)
			}
			return strings.ToLower(value[:i]) + " " + strings.TrimLeft(value[i:], " \t")
		}
	}
	return value
}

// ParseCost reads the cost of a request: a number, or the name of the header that contains it.
func ParseCost(text string) (cost int64, header string, err error) {
	if name, ok := strings.CutPrefix(text, "{header."); ok && strings.HasSuffix(name, "}") {
		name = strings.TrimSuffix(name, "}")
		if !isToken(name) {
			return 0, "", fmt.Errorf("%q doesn't name a header, want {header.NAME}", text)
		}
		return 0, textproto.CanonicalMIMEHeaderKey(name), nil
	}
	cost, err = strconv.ParseInt(text, 10, 64)
	if err != nil || cost < 1 {
		return 0, "", fmt.Errorf("%q, want a whole number above 0 or {header.NAME}", text)
	}
	return cost, "", nil
}

// Value returns a key that is written as text, in the form of [KeyPart.Normalize]. It returns an error if no request has
// the key, or if the key consists of several parts.
func (k Key) Value(text string) (string, error) {
	if len(k) != 1 {
		return "", errors.New("can only be a value if the key is a single one, such as {host}")
	}
	return k[0].parse(text)
}

// parse returns a value that is written as text in the form of Normalize. It returns an error if no request has it.
func (p KeyPart) parse(text string) (string, error) {
	var err error
	switch p.Kind {
	case "client":
		a, err := netip.ParseAddr(text)
		if err != nil {
			return "", errors.New("is not an address")
		}
		return netaddr.Plain(a).String(), nil
	case "host":
		if !isHostWithoutPort(text) {
			err = errors.New("is not a host without a port")
		}
	case "path":
		if err = checkPath(text); err == nil && strings.Contains(text, "*") {
			err = errors.New("has a *, but is not a pattern: want a whole path")
		}
	case "method":
		err = checkMethod(text)
	case "header":
		err = checkFieldValue(text)
	case "query":
		if strings.Contains(text, "\x00") {
			err = errors.New("never matches: it contains NUL")
		}
	}
	value := p.Normalize(text)
	if err == nil && value == "" {
		err = errors.New("is empty, but no key is empty")
	}
	return value, err
}
