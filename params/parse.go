package params

import (
	"errors"
	"strconv"
	"time"
)

// Each function that parses a text returns its value, or what is wrong with it as a
// predicate.

func parseString(text string) (string, string) { return text, "" }

func parseNumber(text string) (int, string) {
	n, fault := parseInt(text)
	if int64(int(n)) != n {
		return 0, "is out of range"
	}
	return int(n), fault
}

// parseInt reads a whole number as JSON and HTML write it: the standard library's also
// takes a leading plus, as of the others here.
func parseInt(text string) (n int64, fault string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, "is out of range"
	case err != nil, text[0] == '+':
		return 0, "must be a whole number"
	}
	return n, ""
}

func parseFloat64(text string) (float64, string) { return parseFloat(text, 64) }

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

func parseBool(text string) (b bool, fault string) {
	switch text {
	case "true", "1", "on":
		return true, ""
	case "false", "0", "off":
		return false, ""
	}
	return false, "must be true or false"
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
	switch {
	case f.raw != nil:
		return memberStrings(f.raw, name)
	case f.count == 1:
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
