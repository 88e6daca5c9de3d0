package layout

import (
	"fmt"
	"time"
)

// Period is a period of the calendar. The zero Period means that the windows of a rule begin with a charge.
type Period uint8

// The periods. A week begins on Monday.
const (
	Day Period = iota + 1
	Week
	Month
)

// String returns the period's name in lower case.
func (p Period) String() string {
	if p < Day || p > Month {
		return fmt.Sprintf("Period(%d)", uint8(p))
	}
	return [...]string{Day: "day", Week: "week", Month: "month"}[p]
}

// Length returns the nominal length of a period: 24 hours, 7 days or 31 days.
func (p Period) Length() time.Duration {
	return [...]time.Duration{Day: 1, Week: 7, Month: 31}[p] * 24 * time.Hour
}

// PerText describes the interval to which the limit applies, such as "1m0s" or "month in Europe/Berlin".
func (l *Layout) PerText() string {
	if l.Period == 0 {
		return Duration(l.Per).String()
	}
	return fmt.Sprintf("%v in %v", l.Period, l.Location)
}

// WindowEnd returns the end of the window that a charge at the time now opens.
func (l *Layout) WindowEnd(now int64) int64 {
	if l.Period == 0 {
		return now + l.Per
	}
	_, end := l.CalendarWindow(now)
	return end
}

// CalendarWindow returns the beginning and the end of the calendar's window that contains the time now. Each window begins
// when the location's date first reaches the first date of a period. So windows have no gaps between them, even if a clock
// skips midnight or shows it twice.
func (l *Layout) CalendarWindow(now int64) (start, end int64) {
	date := l.firstDate(time.UnixMicro(now).In(l.Location))
	for end = l.reaches(date); end <= now; {
		start = end
		date = l.nextDate(date)
		end = l.reaches(date)
	}
	return start, end
}

// firstDate returns the first date of the period that contains t. Its time is midnight UTC.
func (l *Layout) firstDate(t time.Time) time.Time {
	year, month, day := t.Date()
	switch l.Period {
	case Week:
		day -= int(t.Weekday()+6) % 7
	case Month:
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func (l *Layout) nextDate(date time.Time) time.Time {
	switch l.Period {
	case Week:
		return date.AddDate(0, 0, 7)
	case Month:
		return date.AddDate(0, 1, 0)
	}
	return date.AddDate(0, 0, 1)
}

// reaches returns the first time at which the location's date is this date or a later one.
func (l *Layout) reaches(date time.Time) int64 {
	for t := date.Add(-36 * time.Hour).In(l.Location); ; { // before any location reaches the date
		_, offset := t.Zone()
		midnight := date.Add(-time.Duration(offset) * time.Second) // if the offset were always this one
		from, to := t.ZoneBounds()
		if !to.IsZero() && !to.After(t) {
			to = to.Add(24 * time.Hour) // after 2037, package time ends the zone a day before a leap year ends
		}
		if to.IsZero() || midnight.Before(to) {
			return max(midnight.UnixMicro(), from.UnixMicro())
		}
		t = to
	}
}
