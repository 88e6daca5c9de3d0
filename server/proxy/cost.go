package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// maxCost bounds what a client can say that its request costs.
const maxCost = 1 << 53

// costOf reads what a request costs. The function is nil for 1, the number 0 if requests
// tell it themselves.
func costOf(text string) (func(context.Context, *http.Request) (int64, error), int64, error) {
	if text == "" {
		return nil, 1, nil
	}
	if name, ok := strings.CutPrefix(text, "{header."); ok && strings.HasSuffix(name, "}") {
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSuffix(name, "}"))
		if !isToken(name) {
			return nil, 1, fmt.Errorf("%q names no header, want {header.NAME}", text)
		}
		return func(_ context.Context, r *http.Request) (int64, error) {
			v := r.Header.Get(name)
			if v == "" {
				return 1, nil
			}
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > maxCost {
				return 0, &badCost{name, v}
			}
			return n, nil
		}, 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return nil, 0, fmt.Errorf("%q, want a whole number above 0 or {header.NAME}", text)
	}
	return func(context.Context, *http.Request) (int64, error) { return n, nil }, n, nil
}

// badCost is a request header that should say what a request costs.
type badCost struct{ name, value string }

func (e *badCost) Error() string {
	return fmt.Sprintf("%s is %q, want a whole number above 0", e.name, e.value)
}

// Problem returns the response.
func (e *badCost) Problem() (int, map[string]any) {
	return http.StatusBadRequest, map[string]any{"detail": "The header " + e.name + " should be a whole number above 0."}
}

// affordable checks that a request can be paid for at all.
func affordable(f *faults, field string, cost int64, limits []ratelimit.Rule) {
	for _, l := range limits {
		if l != (ratelimit.Rule{}) && cost > l.Burst() {
			f.addf(field, "has a limit of %d, and a request costs %d: none would ever pass", l.Burst(), cost)
		}
	}
}
