package property

import "sync"

// once is a request's properties as sync.OnceValues, at hand without any look-up.
type once []func() (*value, error)

// newOnce is not inlined, so that the properties live on the heap: a request outlives
// the function that makes it.
//
//go:noinline
func newOnce(props int) once {
	o := make(once, props)
	for i := range o {
		o[i] = sync.OnceValues(func() (*value, error) { return ada, nil })
	}
	return o
}

func onceHit() loop {
	o := newOnce(defined)
	return func(n int) error {
		for range n {
			if v, err := o[0](); v != ada || err != nil {
				return checkValue(v, err)
			}
		}
		return nil
	}
}

func onceFirst(props int) loop {
	return func(n int) error {
		for range n {
			if v, err := newOnce(props)[0](); v != ada || err != nil {
				return checkValue(v, err)
			}
		}
		return nil
	}
}

func onceSetup(props int) loop {
	return func(n int) error {
		for range n {
			if len(newOnce(props)) != props {
				return checkValue(nil, nil)
			}
		}
		return nil
	}
}
