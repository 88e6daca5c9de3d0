package property

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// value is what all properties are.
type value struct{ name string }

var ada = &value{"ada"}

const (
	defined = 16 // properties of a request, unless the case sets another number
	depth   = 5  // values that were put into the chain after the one that is read
)

// way is a way to give a request its values. Each function makes a loop of n times
// what the case is about; a loop returns [harness.ErrWrong] if it reads a wrong value.
type way struct {
	name  string
	hit   func() loop          // read a value that is there
	first func(props int) loop // make a request with props values, read one of them
	setup func(props int) loop // make a request with props values, read none
}

type loop = harness.Loop

var ways = []way{
	{"lazyreq", lazyHit, lazyFirst, lazySetup},
	{"context", chainHit, chainFirst, chainSetup},
	{"oncevalues", onceHit, onceFirst, onceSetup},
	{"singleflight", flightHit, flightFirst, flightSetup},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "property",
		About: fmt.Sprintf("a value of a request; first: one of %d; context: %d values deep", defined, depth),
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	cases := []struct {
		name string
		loop func(w way) loop
	}{
		{"hit", func(w way) loop { return w.hit() }},
		{"first", func(w way) loop { return w.first(defined) }},
		{"setup-1", func(w way) loop { return w.setup(1) }},
		{"setup-4", func(w way) loop { return w.setup(4) }},
		{"setup-16", func(w way) loop { return w.setup(16) }},
	}
	rounds, length := 15, harness.FullRound
	if r.Quick {
		rounds, length = 5, harness.QuickRound
	}
	for _, c := range cases {
		var contenders []harness.Contender
		for i, w := range ways {
			contenders = append(contenders, harness.Contender{
				Name: w.name, Ours: i == 0,
				Start: func(context.Context) (harness.Instance, error) { return harness.NewTimed(c.loop(w), length) },
			})
		}
		if err := r.Compare(ctx, c.name, rounds, harness.LoopMetrics, contenders); err != nil {
			return err
		}
	}
	return nil
}

// checkValue returns an error for a wrong value.
func checkValue(v *value, err error) error {
	if err != nil {
		return err
	}
	if v != ada {
		return fmt.Errorf("%w: got %v", harness.ErrWrong, v)
	}
	return nil
}
