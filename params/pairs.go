package params

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pair is one name=value of a query or a form, decoded.
type pair struct{ name, value string }

// parsePairs decodes a query or an urlencoded form, into buf if that is large enough. It
// stops at the first fault, and never holds more than limit pairs.
func parsePairs(buf []pair, raw string, from Source, limit int) ([]pair, error) {
	if raw == "" {
		return nil, nil
	}
	pairs := buf
	if n := min(strings.Count(raw, "&")+1, limit); n > cap(buf) {
		pairs = make([]pair, 0, n)
	}
	for item := range strings.SplitSeq(raw, "&") {
		if item == "" {
			continue
		}
		if len(pairs) == limit {
			return nil, tooManyError(from, limit)
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
	name, value, _ := strings.Cut(item, "=")
	name, fault := unescape(name)
	if fault != "" {
		return pair{}, malformedError(from, "", "has a parameter whose name "+fault)
	}
	if value, fault = unescape(value); fault != "" {
		return pair{}, malformedError(from, shorten(name), fault)
	}
	return pair{name, value}, nil
}

// pairsOf returns the pairs of a form that the standard library has parsed, without
// checks of their number, size or text.
func pairsOf(form url.Values, from Source, o *Options) ([]pair, error) {
	var pairs []pair
	var size int64
	for name, values := range form {
		for _, value := range values {
			if len(pairs) == o.MaxParams {
				return nil, tooManyError(from, o.MaxParams)
			}
			if size += int64(len(name) + len(value)); size > o.MaxBody {
				return nil, bodyTooLargeError(o.MaxBody)
			}
			if fault := textProblem(name); fault != "" {
				return nil, malformedError(from, "", "has a parameter whose name "+fault)
			}
			if fault := textProblem(value); fault != "" {
				return nil, malformedError(from, shorten(name), fault)
			}
			pairs = append(pairs, pair{name, value})
		}
	}
	return pairs, nil
}

func tooManyError(from Source, limit int) *Error {
	return &Error{Source: from, Reason: ErrTooLarge, Detail: fmt.Sprintf("has more than %d parameters", limit)}
}

// unescape decodes percent-encoding and plus signs, or returns a predicate that describes
// what is wrong with s.
func unescape(s string) (text, fault string) {
	if isPlain(s) {
		return s, ""
	}
	if strings.IndexByte(s, ';') >= 0 {
		return "", "has a semicolon, which separates nothing and must be written %3B"
	}
	text, err := url.QueryUnescape(s)
	if err != nil {
		var escape url.EscapeError
		_ = errors.As(err, &escape)
		return "", "has the malformed percent-encoding " + strconv.Quote(string(escape))
	}
	return text, textProblem(text)
}

// isPlain reports whether s has nothing to decode or to refuse.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == '%' || c == '+' || c == ';' || c == 0 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// textProblem returns a predicate that describes what is wrong with decoded text. NUL is
// refused because C strings, file names and several databases end at it, so that two
// readers of one value could disagree.
func textProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "has a NUL byte"
	}
	return ""
}
