package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks marks the multiples of each power of ten, and writes 1, 2 and 5 of them.
type logTicks struct{}

// Ticks implements [plot.Ticker].
func (logTicks) Ticks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(least)); power <= math.Log10(most); power++ {
		for digit := 1; digit <= 9; digit++ {
			tick := plot.Tick{Value: float64(digit) * math.Pow(10, power)}
			if tick.Value < least || tick.Value > most {
				continue
			}
			if digit == 1 || digit == 2 || digit == 5 {
				tick.Label = strconv.FormatFloat(tick.Value, 'g', 10, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
