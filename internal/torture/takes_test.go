package torture

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ms  = int64(1000)
	per = 100 * time.Millisecond
)

// at returns an allowed take of one unit that was sent and received at these times.
func at(sent, received int64) Take { return Take{Sent: sent, Received: received, N: 1, Allowed: true} }

func not(t Take) Take { t.Allowed = false; return t }

func TestCheck(t *testing.T) {
	failed := not(at(0, 1*ms))
	failed.Failed = true
	two := at(10*ms, 11*ms)
	two.N = 2
	for name, tt := range map[string]struct {
		rule  Rule
		takes []Take
		want  string // a part of the error, or "" if there is no error
	}{
		"nothing":                   {SlidingLog(2, per), nil, ""},
		"as many as may be":         {SlidingLog(2, per), []Take{at(0, 1), at(0, 1)}, ""},
		"one too many":              {SlidingLog(2, per), []Take{at(0, 1), at(50*ms, 60*ms), at(70*ms, 100*ms-1)}, "3 units"},
		"in any order":              {SlidingLog(2, per), []Take{at(70*ms, 90*ms), at(0, 1), at(50*ms, 60*ms)}, "3 units"},
		"units, not takes":          {SlidingLog(2, per), []Take{at(0, 1), two}, "3 units"},
		"may have been later":       {SlidingLog(2, per), []Take{at(0, 1), at(50*ms, 60*ms), at(70*ms, 100*ms)}, ""},
		"may have been earlier":     {SlidingLog(2, per), []Take{at(0, 30*ms), at(50*ms, 60*ms), at(70*ms, 110*ms)}, ""},
		"two intervals":             {SlidingLog(2, per), []Take{at(0, 1), at(2, 3), at(100*ms, 110*ms), at(120*ms, 130*ms)}, ""},
		"too many of two intervals": {SlidingLog(1, per), []Take{at(0, 150*ms), at(10*ms, 160*ms), at(20*ms, 180*ms)}, "3 units"},
		"failed, so perhaps not":    {SlidingLog(2, per), []Take{failed, at(0, 1), at(0, 1)}, ""},
		"denied in order":           {SlidingLog(1, per), []Take{at(0, 1), not(at(50*ms, 60*ms))}, ""},
		"denied without reason":     {SlidingLog(2, per), []Take{at(0, 1), not(at(50*ms, 60*ms))}, "without reason"},
		"denied too late":           {SlidingLog(1, per), []Take{at(0, 1), not(at(101*ms, 102*ms))}, "without reason"},
		"denied before":             {SlidingLog(1, per), []Take{not(at(0, 1)), at(2, 3)}, "without reason"},
		"denied at once":            {SlidingLog(1, per), []Take{not(at(0, 5)), at(2, 3)}, ""},
		"denied, one has failed":    {SlidingLog(1, per), []Take{failed, not(at(900*ms, 910*ms))}, ""},
		"more than ever passes":     {SlidingLog(1, per), []Take{not(two)}, ""},
		"a window's edge":           {FixedWindow(2, per), []Take{at(0, 1), at(98*ms, 98*ms), at(101*ms, 101*ms), at(102*ms, 102*ms)}, ""},
		"a window's edge, too many": {FixedWindow(2, per), []Take{at(0, 1), at(1, 2), at(97*ms, 97*ms), at(98*ms, 98*ms), at(99*ms, 99*ms)}, "5 units"},
		"a window begun by what failed": {FixedWindow(2, per), []Take{
			failed, at(50*ms, 51*ms), at(101*ms, 102*ms), at(140*ms, 141*ms),
		}, ""},
		"a window's next":             {FixedWindow(2, per), []Take{at(0, 1), at(1, 2), at(100*ms, 101*ms), at(102*ms, 103*ms), at(199*ms, 199*ms)}, ""},
		"a window's next, too many":   {FixedWindow(2, per), []Take{at(0, 1), at(1, 2), at(101*ms, 101*ms), at(102*ms, 103*ms), at(199*ms, 199*ms)}, "3 units in a window"},
		"known windows":               {FixedWindow(2, per).WithWindowEnds(2, per, []int64{100 * ms, 250 * ms}), []Take{at(1, 2), at(98*ms, 99*ms), at(150*ms, 151*ms)}, ""},
		"known windows, too many":     {FixedWindow(2, per).WithWindowEnds(2, per, []int64{250 * ms, 100 * ms}), []Take{failed, at(150*ms, 151*ms), at(160*ms, 161*ms), at(170*ms, 171*ms)}, "3 units in the window"},
		"known windows, at an edge":   {FixedWindow(1, per).WithWindowEnds(1, per, []int64{100 * ms, 200 * ms}), []Take{at(1, 2), at(99*ms, 101*ms), at(110*ms, 111*ms)}, ""},
		"between known windows":       {FixedWindow(2, per).WithWindowEnds(2, per, []int64{100 * ms, 250 * ms}), []Take{at(1, 2), at(120*ms, 121*ms)}, "in no window"},
		"held by callers":             {Prepaid(SlidingLog(5, per), 10*time.Millisecond, 2), []Take{at(0, 1), at(0, 1), at(1*ms, 1*ms), not(at(50*ms, 51*ms))}, ""},
		"held for a life":             {Prepaid(SlidingLog(5, per), 10*time.Millisecond, 2), []Take{at(0, 1), at(0, 1), at(0, 1), not(at(109*ms, 110*ms))}, ""},
		"held for longer":             {Prepaid(SlidingLog(5, per), 10*time.Millisecond, 2), []Take{at(0, 1), at(0, 1), at(0, 1), not(at(111*ms, 112*ms))}, "without reason"},
		"more than is held":           {Prepaid(SlidingLog(5, per), 10*time.Millisecond, 2), []Take{at(0, 1), at(0, 1), not(at(50*ms, 51*ms))}, "without reason"},
		"too many, held or not":       {Prepaid(SlidingLog(2, per), 10*time.Millisecond, 2), []Take{at(0, 1), at(0, 1), at(1*ms, 1*ms)}, "3 units"},
		"rounded up to buckets":       {Buckets(1, per, 30*time.Millisecond), []Take{at(0, 1), at(119*ms, 120*ms)}, "2 units"},
		"after the buckets":           {Buckets(1, per, 30*time.Millisecond), []Take{at(0, 1), at(119*ms, 120*ms+1)}, ""},
		"denied by a bucket":          {Buckets(1, per, 30*time.Millisecond), []Take{at(0, 1), not(at(149*ms, 150*ms))}, ""},
		"denied longer than a bucket": {Buckets(1, per, 30*time.Millisecond), []Take{at(0, 1), not(at(151*ms, 152*ms))}, "without reason"},
		"filled up":                   {GCRA(10, per, 2), []Take{at(0, 1), at(0, 1), at(10*ms, 10*ms)}, ""},
		"not yet filled up":           {GCRA(10, per, 2), []Take{at(0, 1), at(0, 1), at(9*ms, 9*ms)}, "3 units"},
		"denied, not yet filled up":   {GCRA(10, per, 2), []Take{at(0, 1), at(0, 1), not(at(9*ms, 9*ms))}, ""},
		"denied, though filled up":    {GCRA(10, per, 2), []Take{at(0, 1), at(0, 1), not(at(12*ms, 12*ms))}, "without reason"},
	} {
		err := Check(tt.rule, tt.takes)
		if tt.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tt.want, name)
		}
	}
}

func TestTakeString(t *testing.T) {
	require.Equal(t, "take of 1, 2 to 3 µs, allowed", fmt.Sprint(at(2, 3)))
	require.Equal(t, "take of 1, 2 to 3 µs, denied", fmt.Sprint(not(at(2, 3))))
}
