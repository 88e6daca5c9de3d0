package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// match checks a [Match].
func (k *checker) match(m Match, field string) {
	for i, method := range m.Methods {
		if err := checkMethod(method); err != nil {
			k.addf(fmt.Sprintf("%s.methods[%d]", field, i), "%q %w", method, err)
		}
	}
	for i, host := range m.Hosts {
		base, below := strings.CutPrefix(host, "*.")
		if !isHostWithoutPort(base) || below && base[0] == '[' {
			k.addf(fmt.Sprintf("%s.hosts[%d]", field, i), "%q is not a host without a port, want one such as example.com or *.example.com", host)
		}
	}
	for i, p := range m.Paths {
		if err := checkPattern(p); err != nil {
			k.addf(fmt.Sprintf("%s.paths[%d]", field, i), "%q %w", p, err)
		}
	}
	k.headers(m.Headers, field+".headers")
}

// headers checks [Match.Headers].
func (k *checker) headers(headers map[string]string, field string) {
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at, canonical := field+"."+name, textproto.CanonicalMIMEHeaderKey(name)
		if !isToken(name) {
			k.addf(at, "%q is not the name of a header", name)
		}
		k.header(at, name)
		if taken[canonical] {
			k.addf(at, "is the same header as another, %s", canonical)
		}
		taken[canonical] = true
		value := headers[name]
		if err := checkFieldValue(value); err != nil {
			k.addf(at, "%q %w", value, err)
		}
		switch _, notNumber := strconv.ParseUint(value, 10, 63); {
		case value == "*":
		case canonical == "Upgrade" && !strings.EqualFold(value, "websocket"):
			k.addf(at, "%q never matches: only upgrades to websocket are supported", value)
		case canonical == "Content-Length" && notNumber != nil:
			k.addf(at, "%q never matches: it is not a number", value)
		}
	}
}

// IsMethod reports whether m is the name of a method. Lower-case letters are not allowed, since some servers read
// "post" as POST.
func IsMethod(m string) bool {
	return m != "" && !strings.ContainsFunc(m, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// checkMethod returns an error if the proxy refuses all requests with this method.
func checkMethod(m string) error {
	switch {
	case !IsMethod(m):
		return errors.New("is not a method, want one such as GET")
	case m == http.MethodConnect:
		return errors.New("never matches: CONNECT is not supported")
	}
	return nil
}

// escape matches an escape in a URL, for example %20.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkPath returns an error if p can't be equal to the path of a request, which is compared without escapes and
// parameters.
func checkPath(p string) error {
	switch {
	case p == "" || p[0] != '/':
		return errors.New("does not begin with /")
	case strings.ContainsAny(p, `;\`):
		return errors.New("never matches: parameters of segments are removed, and a backslash is a slash")
	case strings.Contains(p, "?"):
		return errors.New("never matches: the query is not part of the path")
	case escape.MatchString(p):
		return fmt.Errorf("never matches: paths are compared decoded, so write the character itself for %s", escape.FindString(p))
	case strings.ContainsFunc(p, unicode.IsControl):
		return errors.New("never matches: paths with control characters are refused")
	}
	return nil
}

// checkPattern checks a pattern of [Match.Paths].
func checkPattern(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if clean := path.Clean(p); clean != p && clean+"/" != p {
		return fmt.Errorf("never matches: paths are compared in their shortest form, %q", clean)
	}
	base, _ := cutDeep(p)
	for s := range strings.SplitSeq(base, "/") {
		if strings.Contains(s, "*") && s != "*" {
			return errors.New(`is not a pattern: "*" must be a whole segment, and "**" the last one`)
		}
	}
	return nil
}

// checkFieldValue returns an error if no request header can have this value.
func checkFieldValue(v string) error {
	switch {
	case v != textproto.TrimString(v):
		return errors.New("never matches: a header's value doesn't begin or end with a space")
	case strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return errors.New("never matches: a header's value has no control characters")
	}
	return nil
}
