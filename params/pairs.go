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

// parsePairs decodes a query or an urlencoded form. It uses the array of buf if that is large enough. It stops at
// the first fault, and never holds more than limit pairs.
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
		name, value, _ := strings.Cut(item, "=")
		name, nameFault := unescape(name)
		value, valueFault := unescape(value)
		if err := pairError(from, name, nameFault, valueFault); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{name, value})
	}
	return pairs, nil
}

// pairError returns the error about a pair with a fault in its name or value.
func pairError(from Source, name, nameFault, valueFault string) error {
	switch {
	case nameFault != "":
		return malformedError(from, "", "has a parameter whose name "+nameFault)
	case valueFault != "":
		return malformedError(from, name, valueFault)
	}
	return nil
}

func tooManyError(from Source, limit int) *Error {
	return newError(ErrTooLarge, from, "", fmt.Sprintf("has more than %d parameters", limit))
}

// unescape decodes percent-encoding and plus signs, or returns a predicate that describes the fault in s.
func unescape(s string) (text, fault string) {
	if isPlainText(s) {
		return s, ""
	}
	if strings.Contains(s, ";") {
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

// isPlainText reports whether there is nothing to decode or to refuse in s.
func isPlainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == '%' || c == '+' || c == ';' || c == 0 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// textProblem returns a predicate that describes the fault in a decoded text. NUL is refused because C strings,
// file names and several databases end at it, so that two readers of one value could disagree.
func textProblem(s string) string {
	switch {
	case isPlainText(s):
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.Contains(s, "\x00"):
		return "has a NUL byte"
	}
	return ""
}
