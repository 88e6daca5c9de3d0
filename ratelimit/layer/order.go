package layer

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// place is where a layer stands: the smaller, the further out.
type place int

const (
	listsPlace place = iota + 1
	shadowPlace
	denyCachePlace
	failoverPlace
	leasePlace
)

var placeNames = [...]string{
	listsPlace: "Lists", shadowPlace: "Shadow", denyCachePlace: "DenyCache",
	failoverPlace: "Failover", leasePlace: "Lease",
}

func (p place) String() string { return placeNames[p] }

// layer is what all layers are.
type layer interface {
	ratelimit.Store
	place() place
}

// fits returns what is wrong with inner as the store that a layer at p wraps.
func fits(p place, inner ratelimit.Store) error {
	if inner == nil {
		return fmt.Errorf("layer: New%v: store is nil", p)
	}
	in, ok := inner.(layer)
	switch {
	case !ok || in.place() > p:
		return nil
	case in.place() == p:
		return fmt.Errorf("%w: %v around another %v", ErrOrder, p, p)
	default:
		return fmt.Errorf("%w: %v around %v, want %v around %v", ErrOrder, p, in.place(), in.place(), p)
	}
}

// ErrOrder means that layers were put together in an order other than that of the package
// documentation.
var ErrOrder = errors.New("layer: wrong order")
