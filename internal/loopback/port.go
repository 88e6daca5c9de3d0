package loopback

import (
	"fmt"
	"net"
	"strconv"
)

// Port is a TCP port of the loopback interface. As long as it is reserved, whoever
// listens on it by its number can do so, and stop, and do so again; nobody gets it who
// asks for any free port. While nobody listens, connections are refused. It is
// immutable and safe for concurrent use.
type Port struct {
	number int
	free   func() // ends the reservation
}

// Reserve reserves a port that was free.
func Reserve() (*Port, error) { return reserve(0) }

// ReservePair reserves a free port and the one that is apart above it, which is what
// the node of a Redis Cluster needs with 10000.
func ReservePair(apart int) (low, high *Port, err error) {
	for range 100 { // most free ports have free neighbours
		if low, err = Reserve(); err != nil {
			return nil, nil, err
		}
		if low.number+apart <= 65535 {
			if high, err = reserve(low.number + apart); err == nil {
				return low, high, nil
			}
		}
		defer low.Release() // later, so that the next one is another
	}
	return nil, nil, fmt.Errorf("loopback: no two free ports that are %d apart", apart)
}

// Addr returns the port as host and number.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// String returns the port's number.
func (p *Port) String() string { return strconv.Itoa(p.number) }

// Release ends the reservation. It is called once, when nobody listens any more.
func (p *Port) Release() { p.free() }
