package layer

import "time"

// demand is how many units of a key were asked for, in periods of a rule's life. The zero
// demand is none.
type demand struct {
	period      time.Duration // the number of the present one
	now, before int64         // units in this one, and in the one before
}

// note adds n units.
func (d *demand) note(n int64, at, life time.Duration) {
	d.roll(at, life)
	d.now += n
}

// recent estimates the units of the last life: those of the present period, and as large a
// part of the one before as is within it.
func (d *demand) recent(at, life time.Duration) int64 {
	d.roll(at, life)
	rest := life - at%life
	return d.now + int64(float64(d.before)*float64(rest)/float64(life))
}

// idle tells whether nothing was asked for lately.
func (d *demand) idle(at, life time.Duration) bool { return at/life > d.period+1 }

func (d *demand) roll(at, life time.Duration) {
	switch period := at / life; {
	case period == d.period:
	case period == d.period+1:
		d.period, d.now, d.before = period, 0, d.now
	default:
		*d = demand{period: period}
	}
}
