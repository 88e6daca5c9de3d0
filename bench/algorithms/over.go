package algorithms

import (
	"math/rand/v2"
	"time"
)

// seed makes random attacks and clients the same in each run.
const seed = 20

// over is how much gets through.
type over struct {
	subject
	greedy, edge, random, search int64 // the most in any Per, by what found it
	found                        []int64
}

// lengths are the windows of which the most is known: up to three Per, by half seconds,
// and two ticks.
func lengths() []time.Duration {
	list := []time.Duration{2 * tick}
	for w := 500 * time.Millisecond; w <= 3*Per; w += 500 * time.Millisecond {
		list = append(list, w)
	}
	return list
}

// measureOver lets every adversary at s.
func measureOver(s subject) (over, error) {
	o, windows := over{subject: s}, lengths()
	o.found = make([]int64, len(windows))
	see := func(most *int64) func([]charge) {
		return func(charges []charge) {
			*most = max(*most, worst(charges, Per))
			for i, w := range windows {
				o.found[i] = max(o.found[i], worst(charges, w))
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, by := range []struct {
		attacks []attack
		most    *int64
	}{{greedy(), &o.greedy}, {edge(), &o.edge}, {random(rng), &o.random}} {
		for _, a := range by.attacks {
			charges, err := a.run(s)
			if err != nil {
				return over{}, err
			}
			see(by.most)(charges)
		}
	}
	return o, search(s, rng, see(&o.search))
}

// at returns what was found in windows of length w, one of lengths.
func (o over) at(w time.Duration) int64 {
	for i, l := range lengths() {
		if l == w {
			return o.found[i]
		}
	}
	return 0
}
