// Package problem writes the responses of RFC 9457.
package problem

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Write sends a problem as the whole response. status becomes 500 if it is no error's. The
// members are those of the JSON object but for status; title is the status's text if it
// isn't among them. Members that are no JSON are left out, all of them but title and detail.
// A cause that can say when to try again adds Retry-After, if there is none.
func Write(w http.ResponseWriter, status int, members map[string]any, cause error) {
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	body, err := Append(make([]byte, 0, 256), status, members)
	if err != nil {
		body, _ = Append(nil, status, textOnly(members))
	}
	WriteJSON(w, status, body, cause)
}

// WriteJSON is Write for a JSON object that is there already, and keeps it.
func WriteJSON(w http.ResponseWriter, status int, body []byte, cause error) {
	body = append(body, '\n')
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	passes := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if passes && len(h["Retry-After"]) == 0 {
		if wait, ok := retrier(cause); ok {
			h["Retry-After"] = []string{strconv.FormatInt(wait.RetrySeconds(), 10)}
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone is nobody to tell
}

// Seconds returns d in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// RetrySeconds is Seconds for Retry-After, which is at least 1.
func RetrySeconds(d time.Duration) int64 { return max(1, Seconds(d)) }

type retrying interface{ RetrySeconds() int64 } // a denial by a rate limit, or one that can't be checked

func retrier(err error) (wait retrying, ok bool) {
	if wait, ok = err.(retrying); ok {
		return wait, true
	}
	return wait, errors.As(err, &wait)
}

// Append appends the JSON object with the status and the members, by their names' order.
func Append(b []byte, status int, members map[string]any) ([]byte, error) {
	var room [12]string
	names := append(room[:0], "status")
	if _, told := members["title"]; !told {
		names = append(names, "title")
	}
	for name := range members {
		if name != "status" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, name), ':')
		v, told := members[name]
		var err error
		switch {
		case name == "status":
			b = strconv.AppendInt(b, int64(status), 10)
		case !told: // the title
			b = AppendString(b, http.StatusText(status))
		default:
			b, err = appendValue(b, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func textOnly(members map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range [...]string{"title", "detail"} {
		if text, ok := members[name].(string); ok {
			out[name] = text
		}
	}
	return out
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return AppendString(b, v), nil
	case []string:
		if v == nil {
			break
		}
		return AppendStrings(b, v), nil
	}
	text, err := json.Marshal(v)
	return append(b, text...), err
}

// AppendStrings appends a list.
func AppendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	return append(b, ']')
}

// AppendString appends what encoding/json makes of a string, most of them without it.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			text, _ := json.Marshal(s) // any string is JSON
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
