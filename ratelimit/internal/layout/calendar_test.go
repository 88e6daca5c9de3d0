package layout

import (
	"testing"
	"time"
	_ "time/tzdata" // for machines without zone files

	"github.com/stretchr/testify/require"
)

// TestCalendarWindowsHaveNoGaps checks windows around unusual changes of clocks: back to the day before at 0:01, and by a
// day in both directions. It also checks a leap year that the tables of zones do not contain.
func TestCalendarWindowsHaveNoGaps(t *testing.T) {
	for name, year := range map[string]int{
		"America/St_Johns": 2006, "America/Toronto": 1919, "Pacific/Kwajalein": 1993, "Pacific/Guam": 1844, "America/Juneau": 1867, "Africa/Cairo": 2010, "Asia/Gaza": 2011,
		"Europe/Berlin": 2040, "America/New_York": 2040, "Australia/Lord_Howe": 2048,
	} {
		loc, err := time.LoadLocation(name)
		require.NoError(t, err)
		for p := Day; p <= Month; p++ {
			l := Layout{Period: p, Location: loc}
			from, to := time.Date(year, 1, 1, 0, 0, 0, 0, loc), time.Date(year+1, 1, 10, 0, 0, 0, 0, loc)
			last, longest := int64(0), p.Length()+Day.Length()
			for now := from.UnixMicro(); now < to.UnixMicro(); now += (97 * time.Minute).Microseconds() {
				start, end := l.CalendarWindow(now)
				require.LessOrEqual(t, start, now, "%v in %v", p, name)
				require.Less(t, now, end, "%v in %v", p, name)
				require.LessOrEqual(t, Duration(end-start), longest, "%v in %v", p, name)
				if last != 0 && last != end {
					require.Equal(t, last, start, "%v in %v: the next window", p, name)
				}
				last = end
			}
		}
	}
}

// TestCalendarWindowExamples checks windows by hand.
func TestCalendarWindowExamples(t *testing.T) {
	for _, tt := range []struct {
		zone            string
		period          Period
		now, start, end string
	}{
		{"UTC", Week, "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Sunday
		{"UTC", Month, "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"Europe/Berlin", Day, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", Day, "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"Australia/Lord_Howe", Day, "2026-04-04T18:00:00Z", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
		{"America/Sao_Paulo", Day, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // began at 1:00
		{"America/Sao_Paulo", Day, "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"}, // 23:00 comes twice
		{"Australia/Lord_Howe", Day, "2040-12-31T12:00:00Z", "2040-12-30T13:00:00Z", "2040-12-31T13:00:00Z"},
		{"America/New_York", Month, "2040-12-31T12:00:00Z", "2040-12-01T05:00:00Z", "2041-01-01T05:00:00Z"},
		{"Pacific/Apia", Day, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", Day, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},     // the 31st
		{"America/St_Johns", Day, "2006-10-29T03:00:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"}, // 23:30 again
	} {
		loc, err := time.LoadLocation(tt.zone)
		require.NoError(t, err)
		now, err := time.Parse(time.RFC3339, tt.now)
		require.NoError(t, err)
		start, end := (&Layout{Period: tt.period, Location: loc}).CalendarWindow(now.UnixMicro())
		require.Equal(t, []string{tt.start, tt.end}, []string{
			time.UnixMicro(start).UTC().Format(time.RFC3339), time.UnixMicro(end).UTC().Format(time.RFC3339),
		}, "%v in %v at %v", tt.period, tt.zone, tt.now)
	}
}
