package property

import (
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"
)

// flights is a request's properties as a map by name, with a group for those that are
// not in it yet.
type flights struct {
	resolve map[string]func() (*value, error) // shared by all requests

	mu    sync.RWMutex
	done  map[string]*value
	group singleflight.Group
}

func newResolvers(props int) map[string]func() (*value, error) {
	m := make(map[string]func() (*value, error))
	for i := range props {
		m[strconv.Itoa(i)] = func() (*value, error) { return ada, nil }
	}
	return m
}

//go:noinline
func newFlights(resolve map[string]func() (*value, error)) *flights {
	return &flights{resolve: resolve, done: make(map[string]*value)}
}

func (f *flights) get(name string) (*value, error) {
	f.mu.RLock()
	v, ok := f.done[name]
	f.mu.RUnlock()
	if ok {
		return v, nil
	}
	got, err, _ := f.group.Do(name, func() (any, error) {
		v, err := f.resolve[name]()
		if err == nil {
			f.mu.Lock()
			f.done[name] = v
			f.mu.Unlock()
		}
		return v, err
	})
	v, _ = got.(*value)
	return v, err
}

func flightHit() loop {
	f := newFlights(newResolvers(defined))
	return func(n int) error {
		for range n {
			if v, err := f.get("0"); v != ada || err != nil {
				return checkValue(v, err)
			}
		}
		return nil
	}
}

func flightFirst(props int) loop {
	resolve := newResolvers(props)
	return func(n int) error {
		for range n {
			if v, err := newFlights(resolve).get("0"); v != ada || err != nil {
				return checkValue(v, err)
			}
		}
		return nil
	}
}

func flightSetup(props int) loop {
	resolve := newResolvers(props)
	return func(n int) error {
		for range n {
			if newFlights(resolve).done == nil {
				return checkValue(nil, nil)
			}
		}
		return nil
	}
}
