package params

import (
	"errors"
	"strconv"
	"time"
)

// The functions that parse a text return its value, or a predicate that describes what is
// wrong with it.

func parseString(text string) (string, string) { return text, "" }

func parseNumber(text string) (int, string) {
	n, fault := parseInt(text)
	if int64(int(n)) != n {
		return 0, "is out of range"
	}
	return int(n), fault
}

// parseInt parses a whole number as JSON and HTML write it. Here and below, what package
// strconv accepts beyond that is refused, such as a leading plus.
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

// parseFloat refuses hexadecimal numbers, underscores, infinities and NaN.
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
	// Parse also accepts an hour of one digit, a comma before the fraction, and offsets of
	// 24 hours and of 60 minutes.
	end := len(text)
	if err != nil || text[len("2006-01-02T15")] != ':' || text[len("2006-01-02T15:04:05")] == ',' ||
		text[end-1] != 'Z' && (text[end-5:end-3] > "23" || text[end-2:] > "59") {
		return time.Time{}, wantTime
	}
	return t, ""
}
