package params

import (
	"errors"
	"strconv"
	"time"
)

// Each conversion returns a value, or what is wrong with it as a predicate.

func toString(f found) (text, fault string) {
	if f.raw == nil {
		return f.text, ""
	}
	text, ok := jsonString(f.raw)
	if !ok {
		return "", "must be a string" + butIs(f.raw)
	}
	return text, ""
}

func toInt(f found) (n int, fault string) {
	text := f.text
	if f.raw != nil {
		if typeOf(f.raw) != "a number" {
			return 0, "must be a whole number" + butIs(f.raw)
		}
		text = string(f.raw)
	}
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, "is out of range"
	case err != nil:
		return 0, "must be a whole number"
	}
	return n, ""
}

func toFloat(f found) (x float64, fault string) {
	text := f.text
	if f.raw != nil {
		if typeOf(f.raw) != "a number" {
			return 0, "must be a number" + butIs(f.raw)
		}
		text = string(f.raw)
	}
	return parseFloat(text, 64)
}

// parseFloat reads a number as JSON and HTML write it: ParseFloat alone also takes
// hexadecimal ones, underscores, infinities and NaN.
func parseFloat(text string, bits int) (x float64, fault string) {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
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
		if typeOf(f.raw) != "a boolean" {
			return false, "must be true or false" + butIs(f.raw)
		}
		return f.raw[0] == 't', ""
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

func parseTime(text string) (t time.Time, fault string) {
	t, err := time.Parse(time.RFC3339, text)
	// Parse also takes an hour of one digit and a comma before the fraction.
	if err != nil || text[len("2006-01-02T15")] != ':' || text[len("2006-01-02T15:04:05")] == ',' {
		return time.Time{}, "must be an RFC 3339 time, such as 2006-01-02T15:04:05Z"
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

// jsonStrings decodes an array of strings, whose number the scanner has bounded.
func jsonStrings(raw []byte, name string) ([]string, error) {
	const want = "must be an array of strings"
	if typeOf(raw) != "an array" {
		return nil, malformedMember(name, want+butIs(raw))
	}
	all := []string{}
	s := scanner{data: raw, pos: 1}
	for s.next() != ']' {
		if s.peek() != '"' {
			return nil, malformedMember(name, want)
		}
		text, err := s.text()
		if err != nil {
			return nil, err
		}
		all = append(all, string(unquote(text)))
		if s.next() == ',' {
			s.pos++
		}
	}
	return all, nil
}

// malformedMember is a fault of a member of the JSON object.
func malformedMember(name, detail string) *Error {
	e := malformed(SourceJSON, name, detail)
	e.pointer = pointerTo(step{name: []byte(name)})
	return e
}

// jsonString decodes a value that the scanner has checked.
func jsonString(raw []byte) (text string, ok bool) {
	if typeOf(raw) != "a string" {
		return "", false
	}
	return string(unquote(raw)), true
}

// typeOf names the type of a value that the scanner has checked.
func typeOf(raw []byte) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func butIs(raw []byte) string { return ", not " + typeOf(raw) }
