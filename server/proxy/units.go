package proxy

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// Rate is so many units in a time: 10/60s, 1000/h, 5/500ms, 50/day.
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
		return fmt.Errorf("%q is no rate: %q is no whole number above 0", text, count)
	}
	per = strings.TrimSpace(per)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := parseTime(per)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no rate: %q is no time, want one such as 60s or h: %s", text, per, timeUnits)
	}
	*r = Rate{n, d}
	return nil
}

// timeUnits are what parseTime takes.
const timeUnits = "units are ms, s (sec), m (min), h (hour) and d (day)"

var unitNames = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// parseTime reads a time as package time does, or a whole number of a unit by its name.
func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	end := strings.LastIndexAny(text, "0123456789") + 1
	unit := unitNames[strings.TrimSpace(text[end:])]
	n, wrong := strconv.ParseInt(text[:end], 10, 64)
	if unit == 0 || wrong != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return 0, err
	}
	return time.Duration(n) * unit, nil
}

// Size is a number of bytes: 4096, 64KiB, 128MiB, 1GiB.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = strings.TrimSpace(before), 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is no size, want one such as 64KiB", text)
	}
	*s = Size(n * unit)
	return nil
}

// Network is a range of addresses: 10.0.0.0/8, or a single 192.0.2.7.
type Network netip.Prefix

// String returns the network as it is written, with its length.
func (n Network) String() string { return netip.Prefix(n).String() }

// UnmarshalText reads a network.
func (n *Network) UnmarshalText(text []byte) error {
	p, err := netip.ParsePrefix(string(text))
	if a, single := netip.ParseAddr(string(text)); single == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return fmt.Errorf("%q is no address or network, want one such as 192.0.2.7 or 10.0.0.0/8", text)
	}
	*n = Network(p)
	return nil
}

// prefixes returns networks as net/netip has them, with the plain addresses of IPv4 inside
// of IPv6.
func prefixes(networks []Network) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, netaddr.Unmap(netip.Prefix(n)))
	}
	return out
}
