package ratelimit

import (
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/internal/option"
)

// MaxDuration is the longest duration of an option or a rule, 100 years, in this package and
// those below it. Longer ones are errors, as sums with times could overflow.
const MaxDuration time.Duration = option.MaxDuration

// The checks of fields that several options have; field begins the error, as in
// "ratelimit: GCRAOptions.Limit".

func checkName(field, name string) error {
	if name != "" && !names.Valid(name) {
		return fmt.Errorf("%s is %q, want %s", field, name, names.Rule)
	}
	return nil
}

func checkLimit(field string, limit, least int64) error {
	if limit < least || limit > maxCount {
		return fmt.Errorf("%s is %d, want %d to 2^53", field, limit, least)
	}
	return nil
}

func checkDuration(field string, d time.Duration) error {
	if d%time.Microsecond != 0 {
		return fmt.Errorf("%s is %v, want whole microseconds", field, d)
	}
	return option.Duration("ratelimit", strings.TrimPrefix(field, "ratelimit: "), d, time.Microsecond)
}

// checkBurst checks a GCRA's burst: as per microseconds for each unit, it has to leave
// room for one unit more below 2^53.
func checkBurst(field string, burst, per int64) error {
	if most := maxCount/per - 1; burst < 1 || burst > most {
		return fmt.Errorf("%s is %d, want 1 to %d, so that (burst + 1) × per in microseconds is at most 2^53", field, burst, most)
	}
	return nil
}
