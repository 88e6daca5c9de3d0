package config

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zone files

	"github.com/lazyreq/lazyreq/ratelimit"
)

// Rate is a number of units per time, such as 10/60s, 1000/h or 5/500ms, or per period of the calendar, such as 1000/day or
// 10000/month in Europe/Berlin. The location's default is UTC.
type Rate struct {
	Limit int64
	Per   time.Duration // 0 if there is a Period

	Period   ratelimit.Period
	Location *time.Location
}

// window returns a fixed window or a window of the calendar.
func (r Rate) window() ratelimit.Rule {
	if r.Period != 0 {
		return ratelimit.Calendar(r.Limit, r.Period, r.Location)
	}
	return ratelimit.FixedWindow(r.Limit, r.Per)
}

// ParseRate parses a rate. The number and the time must be above 0.
func ParseRate(text string) (Rate, error) {
	count, per, ok := strings.Cut(text, "/")
	if !ok {
		return Rate{}, fmt.Errorf("%q is not a rate, want one such as 10/60s", text)
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		return Rate{}, fmt.Errorf("%q is not a rate: %q is not a whole number above 0", text, count)
	}
	switch per {
	case "ms", "s", "m", "h", "d":
		per = "1" + per
	}
	period, zone, hasZone := strings.Cut(per, " in ")
	for p := ratelimit.Day; p <= ratelimit.Month; p++ {
		if period != p.String() {
			continue
		}
		location, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" || hasZone && zone == "" {
			return Rate{}, fmt.Errorf("%q is not a rate: %q is not a time zone, want one such as Europe/Berlin", text, zone)
		}
		return Rate{Limit: n, Period: p, Location: location}, nil
	}
	d, err := parseDuration(per)
	if err != nil || d <= 0 {
		return Rate{}, fmt.Errorf("%q is not a rate: %q is not a time, want one such as 60s, h, 7d or month", text, per)
	}
	return Rate{Limit: n, Per: d}, nil
}

// parseDuration parses a duration as [time.ParseDuration] does, or a whole number of days such as 7d.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q: want a time with its unit, such as 50ms, 60s, 5m, 24h or 7d", text)
	}
	return d, nil
}

// Size is a number of bytes: 4096, 64KiB, 128MiB, 1GiB.
type Size int64

func parseSize(text string) (Size, error) {
	number, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = before, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size, want one such as 64KiB", text)
	}
	return Size(n * unit), nil
}

// parsePrefix parses a network. A single address is a network with one address.
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
