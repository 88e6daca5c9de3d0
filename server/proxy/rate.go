package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is so many units in a time: 10/60s, 1000/h, 5/500ms.
type Rate struct {
	Limit int64
	Per   time.Duration
}

// String returns the rate as it is written.
func (r Rate) String() string { return fmt.Sprintf("%d/%v", r.Limit, r.Per) }

// MarshalText writes the rate, "" if there is none.
func (r Rate) MarshalText() ([]byte, error) {
	if r == (Rate{}) {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	count, per, ok := strings.Cut(string(text), "/")
	if !ok {
		return fmt.Errorf("%q is no rate, want one such as 10/60s", text)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no rate: %q is no number above 0", text, count)
	}
	per = strings.TrimSpace(per)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := time.ParseDuration(per)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no rate: %q is no time, want one such as 60s or h", text, per)
	}
	*r = Rate{n, d}
	return nil
}
