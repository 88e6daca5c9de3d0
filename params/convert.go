package params

import (
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Each conversion returns a value, or what is wrong with it as a predicate.

func toString(f found) (text, fault string) {
	if f.raw == nil {
		return f.text, ""
	}
	if k := f.raw.Kind(); k != '"' {
		return "", "must be a string" + butIs(k)
	}
	return unquote(f.raw), ""
}

func toInt(f found) (n int, fault string) {
	text := f.text
	if f.raw != nil {
		if k := f.raw.Kind(); k != '0' {
			return 0, "must be a whole number" + butIs(k)
		}
		text = string(f.raw)
	}
	i, fault := parseInt(text, strconv.IntSize)
	return int(i), fault
}

// parseInt reads a whole number as JSON and HTML write it: the standard library's also
// takes a leading plus, as of the others here.
func parseInt(text string, bits int) (n int64, fault string) {
	n, err := strconv.ParseInt(text, 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, "is out of range"
	case err != nil, text[0] == '+':
		return 0, "must be a whole number"
	}
	return n, ""
}

func toFloat(f found) (x float64, fault string) {
	text := f.text
	if f.raw != nil {
		if k := f.raw.Kind(); k != '0' {
			return 0, "must be a number" + butIs(k)
		}
		text = string(f.raw)
	}
	return parseFloat(text, 64)
}

// parseFloat reads a number, but no hexadecimal one, no underscores, infinities and NaN.
func parseFloat(text string, bits int) (x float64, fault string) {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', c == '-', c == '+' && i > 0, c == '.', c == 'e', c == 'E':
		default:
			return 0, "must be a number"
		}
	}
	x, err := strconv.ParseFloat(text, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, "is out of range"
	case err != nil:
		return 0, "must be a number"
	}
	return x, ""
}

func toBool(f found) (b bool, fault string) {
	if f.raw != nil {
		if k := f.raw.Kind(); k != 't' && k != 'f' {
			return false, "must be true or false" + butIs(k)
		}
		return f.raw.Kind() == 't', ""
	}
	return parseBool(f.text)
}

func parseBool(text string) (b bool, fault string) {
	switch text {
	case "true", "1", "on":
		return true, ""
	case "false", "0", "off":
		return false, ""
	}
	return false, "must be true or false"
}

func toTime(f found) (t time.Time, fault string) {
	text, fault := toString(f)
	if fault != "" {
		return t, fault
	}
	return parseTime(text)
}

const wantTime = "must be an RFC 3339 time, such as 2006-01-02T15:04:05Z"

func parseTime(text string) (t time.Time, fault string) {
	t, err := time.Parse(time.RFC3339, text)
	// Parse also takes an hour of one digit, a comma before the fraction, and offsets of
	// 24 hours and of 60 minutes.
	end := len(text)
	if err != nil || text[len("2006-01-02T15")] != ':' || text[len("2006-01-02T15:04:05")] == ',' ||
		text[end-1] != 'Z' && (text[end-5:end-3] > "23" || text[end-2:] > "59") {
		return time.Time{}, wantTime
	}
	return t, ""
}

// texts returns all values that were given under name.
func (f found) texts(name string) ([]string, error) {
	if f.raw != nil {
		return jsonStrings(f.raw, name)
	}
	if f.count == 1 {
		return []string{f.text}, nil
	}
	all := make([]string, 0, f.count)
	for _, p := range f.pairs {
		if p.name == name {
			all = append(all, p.value)
		}
	}
	return all, nil
}

// jsonStrings decodes an array of strings.
func jsonStrings(raw jsontext.Value, name string) ([]string, error) {
	const want = "must be an array of strings"
	if k := raw.Kind(); k != '[' {
		return nil, memberError(name, want+butIs(k))
	}
	var values []jsontext.Value
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, textError(err)
	}
	all := make([]string, len(values))
	for i, v := range values {
		if v.Kind() != '"' {
			return nil, memberError(name, want)
		}
		all[i] = unquote(v)
	}
	return all, nil
}

// unquote decodes a JSON string that was checked.
func unquote(raw jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}

// memberError is a mistake in a member of the JSON object.
func memberError(name, detail string) *Error {
	return jsonError(ErrMalformed, jsontext.Pointer("").AppendToken(name), detail)
}
