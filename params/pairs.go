package params

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pair is one name=value of a query or a form, decoded.
type pair struct{ name, value string }

// parsePairs decodes a query or an urlencoded form. It stops at the first
// fault, and at most limit pairs are ever held.
func parsePairs(raw string, from Source, limit int) ([]pair, error) {
	if raw == "" {
		return nil, nil
	}
	pairs := make([]pair, 0, min(strings.Count(raw, "&")+1, limit))
	for raw != "" {
		var item string
		item, raw, _ = strings.Cut(raw, "&")
		if item == "" {
			continue
		}
		if len(pairs) == limit {
			return nil, tooMany(from, limit)
		}
		p, err := parsePair(item, from)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func parsePair(item string, from Source) (pair, error) {
	rawName, rawValue, _ := strings.Cut(item, "=")
	name, fault := unescape(rawName)
	if fault != "" {
		return pair{}, malformed(from, "", "has a parameter whose name "+fault)
	}
	value, fault := unescape(rawValue)
	if fault != "" {
		return pair{}, malformed(from, clip(name), fault)
	}
	return pair{name, value}, nil
}

// pairsOf returns the pairs of a form that the standard library parsed, which
// has checked neither their number nor their size nor their text.
func pairsOf(form url.Values, from Source, o *Options) ([]pair, error) {
	var pairs []pair
	var size int64
	for name, values := range form {
		for _, value := range values {
			if len(pairs) == o.MaxParams {
				return nil, tooMany(from, o.MaxParams)
			}
			if size += int64(len(name) + len(value)); size > o.MaxBody {
				return nil, bodyTooLarge(o.MaxBody, nil)
			}
			if fault := textFault(name); fault != "" {
				return nil, malformed(from, "", "has a parameter whose name "+fault)
			}
			if fault := textFault(value); fault != "" {
				return nil, malformed(from, clip(name), fault)
			}
			pairs = append(pairs, pair{name, value})
		}
	}
	return pairs, nil
}

func tooMany(from Source, limit int) *Error {
	return &Error{Source: from, Reason: ErrTooLarge, Detail: fmt.Sprintf("has more than %d parameters", limit)}
}

// unescape decodes percent-encoding and plus signs, or says as a predicate what
// is wrong with s. Text that needs no decoding is returned as it is.
func unescape(s string) (text, fault string) {
	plain := true
	for i := range len(s) {
		switch c := s[i]; {
		case c == ';':
			return "", "has a semicolon, which separates nothing and must be written %3B"
		case c == '%' || c == '+' || c == 0 || c >= utf8.RuneSelf:
			plain = false
		}
	}
	if plain {
		return s, ""
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "", "has the malformed percent-encoding " + strconv.Quote(s[i:min(i+3, len(s))])
			}
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		case '+':
			b.WriteByte(' ')
		default:
			b.WriteByte(s[i])
		}
	}
	text = b.String()
	return text, textFault(text)
}

// textFault says what is wrong with decoded text. NUL is refused because C
// strings, file names and several databases end at it, so that two readers of
// one value could disagree.
func textFault(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "has a NUL byte"
	}
	return ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
