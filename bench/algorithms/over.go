package algorithms

import (
	"math/rand/v2"
	"slices"
	"time"
)

// seed makes random attacks and clients the same in each run.
const seed = 20

// over is how much gets through.
type over struct {
	subject
	found []int64 // for each of windowLengths, the most units that any attack got through
}

// windowLengths are the windows that are measured: up to three Per, in steps of half a second,
// and two ticks.
func windowLengths() []time.Duration {
	list := []time.Duration{2 * tick}
	for w := 500 * time.Millisecond; w <= 3*Per; w += 500 * time.Millisecond {
		list = append(list, w)
	}
	return list
}

// measureOver lets every adversary at s.
func measureOver(s subject) (over, error) {
	o, windows := over{subject: s}, windowLengths()
	o.found = make([]int64, len(windows))
	see := func(charges []charge) {
		for i, w := range windows {
			o.found[i] = max(o.found[i], maxUnitsIn(charges, w))
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, a := range slices.Concat(greedyAttacks(), edgeAttacks(), randomAttacks(rng)) {
		charges, err := a.run(s)
		if err != nil {
			return over{}, err
		}
		see(charges)
	}
	return o, search(s, rng, see)
}

// maxInWindow returns the most units that were found in a window of length w, one of windowLengths.
func (o over) maxInWindow(w time.Duration) int64 {
	for i, l := range windowLengths() {
		if l == w {
			return o.found[i]
		}
	}
	return 0
}
