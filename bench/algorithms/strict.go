package algorithms

import (
	"math/rand/v2"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// strict is how much less gets through than could.
type strict struct {
	subject
	patient float64              // units in a Per, in the long run, of a client that takes all that comes
	pause   time.Duration        // its longest, at worst, from one unit to the next
	shares  map[string][]float64 // of each honest client, for each of loads, at the worst phase
}

// clientLoads returns the loads that honest clients produce, in units of the limit.
func clientLoads() []float64 {
	var list []float64
	for i := 5; i <= 20; i++ {
		list = append(list, float64(i)/10)
	}
	return list
}

// arrivals are moments at which a client comes for a unit.
type arrivals func(rng *rand.Rand, load float64, until time.Duration) []time.Duration

// The honest clients, who know nothing of the rules' state.
const (
	evenly  = "evenly"
	chance  = "at random"
	bunched = "ten at once"
)

var honest = map[string]arrivals{evenly: evenArrivals, chance: poissonArrivals, bunched: bunchedArrivals}

func evenArrivals(_ *rand.Rand, load float64, until time.Duration) (list []time.Duration) {
	for i := 0; ; i++ {
		at := (time.Duration(float64(i) * float64(Per) / (load * Limit))).Truncate(tick)
		if at >= until {
			return list
		}
		list = append(list, at)
	}
}

func poissonArrivals(rng *rand.Rand, load float64, until time.Duration) (list []time.Duration) {
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() * float64(Per) / (load * Limit)).Truncate(tick)
		if at >= until {
			return list
		}
		list = append(list, at)
	}
}

// bunchedArrivals comes ten times at once, and then as rarely as the load prescribes.
func bunchedArrivals(rng *rand.Rand, load float64, until time.Duration) (list []time.Duration) {
	for _, at := range evenArrivals(rng, load/10, until) {
		for range 10 {
			list = append(list, at)
		}
	}
	return list
}

const (
	long   = 30 * Per // how long an honest client goes on
	phases = 4        // at how many it begins
	// cycles is a whole number of each subject's cycles: 60, 61, 65 and 80 s.
	cycles = 190_320 * time.Second
)

// crowd is what one honest client asks for, and how much of it a sliding log lets through.
type crowd struct {
	name  string
	load  float64
	phase time.Duration
	comes []time.Duration
	exact int
}

// allCrowds returns the crowds of all honest clients, by name, then by load, then by phase.
func allCrowds() (list []crowd, err error) {
	log := subject{"", []ratelimit.Rule{slidingLogRule(Limit, Per)}}
	for name, come := range honest {
		for _, load := range clientLoads() {
			for i := range phases {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				c := crowd{name: name, load: load, phase: time.Duration(i) * 1237 * time.Millisecond, comes: come(rng, load, long)}
				if c.exact, err = c.countAdmitted(log); err != nil {
					return nil, err
				}
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// countAdmitted returns how many units s admits.
func (c crowd) countAdmitted(s subject) (int, error) {
	one := newClient(s, c.phase)
	for _, one.now = range c.comes {
		one.take(1)
	}
	return len(one.charges), one.err
}

func measureStrict(s subject, all []crowd) (strict, error) {
	out := strict{subject: s, shares: map[string][]float64{}}
	var err error
	if out.patient, out.pause, err = measurePatientClient(s); err != nil {
		return strict{}, err
	}
	for i, c := range all {
		got, err := c.countAdmitted(s)
		if err != nil {
			return strict{}, err
		}
		share, list := float64(got)/float64(c.exact), out.shares[c.name]
		if i%phases == 0 {
			out.shares[c.name] = append(list, share)
		} else {
			list[len(list)-1] = min(list[len(list)-1], share)
		}
	}
	return out, nil
}

// measurePatientClient measures the second of two times cycles, so that the beginning doesn't count.
func measurePatientClient(s subject) (inPer float64, pause time.Duration, err error) {
	c := newClient(s, 0)
	c.takeAllFor(2*cycles - tick)
	var units int64
	for i, ch := range c.charges {
		if ch.at >= cycles {
			units += ch.n
			pause = max(pause, ch.at-c.charges[i-1].at)
		}
	}
	return float64(units) * float64(Per) / float64(cycles), pause, c.err
}
