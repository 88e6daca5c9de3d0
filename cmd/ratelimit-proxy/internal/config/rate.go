package config

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of units in a time: 10/60s, 1000/h, 5/500ms, 50/day.
type Rate struct {
	Limit int64
	Per   time.Duration
}

// String returns the rate as YAML has it.
func (r Rate) String() string { return fmt.Sprintf("%d/%v", r.Limit, r.Per) }

// ParseRate reads a rate. It returns an error unless the number and the time are above 0.
func ParseRate(text string) (Rate, error) {
	count, per, ok := strings.Cut(text, "/")
	if !ok {
		return Rate{}, fmt.Errorf("%q is not a rate, want one such as 10/60s", text)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
	if err != nil || n < 1 {
		return Rate{}, fmt.Errorf("%q is not a rate: %q is not a whole number above 0", text, count)
	}
	per = strings.TrimSpace(per)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := parseDuration(per)
	if err != nil || d <= 0 {
		return Rate{}, fmt.Errorf("%q is not a rate: %q is not a time, want one such as 60s or h: %s", text, per, timeUnits)
	}
	return Rate{n, d}, nil
}

const timeUnits = "units are ms, s (sec), m (min), h (hour) and d (day)"

var unitNames = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// parseDuration reads what [time.ParseDuration] reads, or a whole number and a unit's name.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	end := strings.LastIndexAny(text, "0123456789") + 1
	unit := unitNames[strings.TrimSpace(text[end:])]
	n, invalid := strconv.ParseInt(text[:end], 10, 64)
	if unit == 0 || invalid != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}

// Size is a number of bytes: 4096, 64KiB, 128MiB, 1GiB.
type Size int64

func parseSize(text string) (Size, error) {
	number, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = strings.TrimSpace(before), 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size, want one such as 64KiB", text)
	}
	return Size(n * unit), nil
}

// parsePrefix reads a network or a single address.
func parsePrefix(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is not an address or network, want one such as 192.0.2.7 or 10.0.0.0/8", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}
