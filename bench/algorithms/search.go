package algorithms

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A search tries tries attacks from each of starts for each window of its targets.
const (
	starts = 3
	tries  = 50
)

// searchWindows are the windows that the search makes the most of, one after the other.
func searchWindows() []time.Duration {
	list := []time.Duration{2 * tick}
	for i := time.Duration(1); i <= 12; i++ {
		list = append(list, i*Per/4+500*time.Millisecond)
	}
	return append(list, Per)
}

// search climbs: it changes an attack at random, and keeps what lets through at least as
// much in the window. seen gets all that is kept.
func search(s subject, rng *rand.Rand, seen func([]charge)) error {
	for _, w := range searchWindows() {
		for range starts {
			if err := climbFor(s, rng, w, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func climbFor(s subject, rng *rand.Rand, w time.Duration, seen func([]charge)) error {
	best, most := attack{steps: []step{randomStep(rng)}}, int64(-1)
	for range tries {
		a := best.mutate(rng)
		charges, err := a.run(s)
		if err != nil {
			return err
		}
		if got := maxUnitsIn(charges, w); got >= most {
			best, most = a, got
			seen(charges)
		}
	}
	return nil
}

func randomStep(rng *rand.Rand) step {
	s := step{
		until: moment(rng.IntN(int(moments))),
		lead:  tick,
		wait:  tick + randomTime(rng, Per),
		take:  amount(rng.IntN(int(amounts))),
	}
	if rng.IntN(2) == 0 {
		s.lead = randomTime(rng, Per/2)
	}
	if rng.IntN(2) == 0 {
		s.drain = randomTime(rng, Per)
	}
	return s
}

// mutate returns the attack with another phase, or with one step that is new, changed or
// gone.
func (a attack) mutate(rng *rand.Rand) attack {
	a.steps = slices.Clone(a.steps)
	i := rng.IntN(len(a.steps))
	switch rng.IntN(6) {
	case 0:
		a.phase = randomTime(rng, Per)
	case 1:
		a.phase = Per - tick // the last moment of a bucket of any length
	case 2:
		a.steps = slices.Insert(a.steps, i, randomStep(rng))
	case 3:
		if len(a.steps) > 1 {
			a.steps = slices.Delete(a.steps, i, i+1)
		}
	case 4:
		a.steps[i] = randomStep(rng)
	default:
		s := &a.steps[i]
		s.lead, s.drain = jitter(rng, s.lead), jitter(rng, s.drain)
	}
	return a
}

// jitter returns a time that is up to a quarter shorter or longer.
func jitter(rng *rand.Rand, d time.Duration) time.Duration {
	return max(tick, time.Duration(float64(d)*(0.75+rng.Float64()/2)).Truncate(tick))
}
