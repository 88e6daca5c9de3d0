package testhost

import (
	"fmt"
	"net"
	"strconv"
)

// Port is a reserved TCP port of the loopback interface. Servers can listen on it, stop, and listen again, and the
// system does not assign it as a free port. While no server listens, connections are refused. A Port is immutable and
// safe for concurrent use.
type Port struct {
	number int
	free   func() // ends the reservation
}

// ReservePort reserves a port that was free.
func ReservePort() (*Port, error) { return reserve(0) }

// reservePair reserves a free port and the port at a distance above it.
func reservePair(distance int) ([]*Port, error) {
	for range 100 { // most free ports have free neighbours
		low, err := ReservePort()
		if err != nil {
			return nil, err
		}
		if low.number+distance <= 65535 {
			if high, err := reserve(low.number + distance); err == nil {
				return []*Port{low, high}, nil
			}
		}
		defer low.Release() // only at the end, so that the next try gets another port
	}
	return nil, fmt.Errorf("testhost: no two free ports that are %d apart", distance)
}

// Addr returns the port as host and number.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// String returns the port's number.
func (p *Port) String() string { return strconv.Itoa(p.number) }

// Release ends the reservation. It must be called once, when no server listens.
func (p *Port) Release() { p.free() }
