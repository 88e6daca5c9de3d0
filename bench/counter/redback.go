package counter

import (
	"context"
	"net"
	"time"

	"github.com/lazyreq/lazyreq/bench/node"
)

// redback is a Node process with redback 0.5.1.
type redback struct{ process *node.Process }

func newRedback(ctx context.Context, addr string) (*redback, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, err := node.Start(ctx, "redback", "redback.js", port)
	if err != nil {
		return nil, err
	}
	return &redback{p}, nil
}

// answer is a line from redback.js.
type answer struct {
	Ops     int
	Seconds float64
}

// call sends a command of redback.js and waits for its answer.
func (b *redback) call(command map[string]any) (a answer, err error) {
	err = b.process.Ask(command, &a)
	return a, err
}

func (b *redback) prepare(_ context.Context, round string, charge bool) error {
	_, err := b.call(map[string]any{"do": "prepare", "round": round, "subjects": subjects, "charge": charge})
	return err
}

func (b *redback) run(_ context.Context, l load, length time.Duration) (sample, error) {
	a, err := b.call(map[string]any{
		"do": "run", "op": l.op, "interval": l.interval.Seconds(),
		"callers": inFlight, "ms": length.Milliseconds(),
	})
	return sample{a.Ops, a.Seconds}, err
}

func (b *redback) verify(context.Context) error {
	_, err := b.call(map[string]any{"do": "verify"})
	return err
}

func (b *redback) cpu() (time.Duration, error) {
	a, err := b.call(map[string]any{"do": "cpu"})
	return time.Duration(a.Seconds * float64(time.Second)), err
}

func (b *redback) Close() error { return b.process.Close() }
