package leasecheck_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/leasecheck"
)

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func hold(process int, number int64, from, to float64) leasecheck.Hold {
	return leasecheck.Hold{User: "u", Process: process, Number: number, From: at(from), To: at(to)}
}

func TestCheck(t *testing.T) {
	good := []leasecheck.Hold{hold(2, 7, 3, 4), hold(1, 5, 1, 2), hold(3, 9, 4, 6), hold(1, 8, 4, 4)}
	for name, tt := range map[string]struct {
		holds  []leasecheck.Hold
		writes []leasecheck.Write
		want   string
	}{
		"good":                  {holds: good},
		"overlap":               {holds: append(good[:3:3], hold(4, 8, 3.9, 4)), want: "two holders at once"},
		"inside another":        {holds: append(good[:3:3], hold(4, 8, 3.2, 3.3)), want: "two holders at once"},
		"overlap in one":        {holds: append(good[:3:3], hold(2, 8, 3.9, 4)), want: "two holders at once"},
		"a number again":        {holds: append(good[:3:3], hold(4, 9, 6, 7)), want: "numbers that don't grow"},
		"a smaller number":      {holds: append(good[:3:3], hold(4, 6, 6, 7)), want: "numbers that don't grow"},
		"no holder at first":    {holds: good[2:3], want: "no holder for 4s"},
		"no holder in between":  {holds: []leasecheck.Hold{good[1], hold(3, 9, 4.25, 6)}, want: "no holder for 2.25s"},
		"no holder for a while": {holds: []leasecheck.Hold{good[1], good[2]}},
		"no holder at the end":  {holds: good[:2], want: "no holder for 4s"},
		"no holder at all":      {want: "no holder for 8s"},
		"another's":             {holds: append(good[:4:4], leasecheck.Hold{User: "v", From: at(1), To: at(9)})},
		"refused":               {holds: good, writes: []leasecheck.Write{{"u", 1, 5, 3, false}, {"u", 1, 5, 1, true}, {"u", 2, 7, 2, true}}},
		"accepted too late":     {holds: good, writes: []leasecheck.Write{{"u", 1, 5, 3, true}, {"u", 1, 5, 1, true}, {"u", 2, 7, 2, true}}, want: "accepted after"},
		"of two processes":      {holds: good, writes: []leasecheck.Write{{"u", 1, 5, 1, true}, {"u", 2, 5, 2, true}}, want: "of the processes 1 and 2"},
		"of another's number":   {holds: good, writes: []leasecheck.Write{{"u", 1, 5, 1, true}, {"v", 2, 5, 2, true}}},
	} {
		err := leasecheck.Check(leasecheck.Run{
			Users: []string{"u"}, From: at(0), To: at(8), Unattended: 2 * time.Second, Holds: tt.holds, Writes: tt.writes,
		})
		if tt.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tt.want, name)
		}
	}
}
