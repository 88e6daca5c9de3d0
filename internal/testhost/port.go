package testhost

import (
	"fmt"
	"net"
	"strconv"
)

// Port is a TCP port of the loopback interface. While it is reserved, servers can listen on it by its
// number, stop, and listen again, and the system does not assign it as a free port. While no server
// listens, connections are refused. A Port is immutable and safe for concurrent use.
type Port struct {
	number int
	free   func() // ends the reservation
}

// ReservePort reserves a port that was free.
func ReservePort() (*Port, error) { return reserve(0) }

// reservePair reserves a free port and the port at a distance above it. A node of a Redis Cluster
// needs such a pair with the distance 10000.
func reservePair(distance int) (low, high *Port, err error) {
	for range 100 { // most free ports have free neighbours
		if low, err = ReservePort(); err != nil {
			return nil, nil, err
		}
		if low.number+distance <= 65535 {
			if high, err = reserve(low.number + distance); err == nil {
				return low, high, nil
			}
		}
		defer low.Release() // later, so that the next one is another
	}
	return nil, nil, fmt.Errorf("testhost: no two free ports that are %d apart", distance)
}

// Addr returns the port as host and number.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// String returns the port's number.
func (p *Port) String() string { return strconv.Itoa(p.number) }

// Release ends the reservation. Call it once, when no server listens.
func (p *Port) Release() { p.free() }
