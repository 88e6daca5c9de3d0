package denycache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// subject is one of the contenders.
type subject interface {
	// run has callers take one unit after the other, each of a random key of the round.
	run(ctx context.Context, round string, length time.Duration) (sample, error)
	// startServer starts a server, if there is none yet, and returns its URL. GET of URL/r1
	// takes a unit of a random key of the round r1: 200 or 429.
	startServer(ctx context.Context) (string, error)
	// storeCalls returns how often the subject has called its store.
	storeCalls(ctx context.Context) (int, error)
	// cpu returns the processor time that the subject's process has used so far.
	cpu() (time.Duration, error)
	Close() error
}

// sample is the result of a round.
type sample struct {
	ops       int
	seconds   float64
	admitted  []int     // of each key, or of all together
	latencies []float64 // in µs, of some of the calls
}

// instance measures a subject in a case.
type instance struct {
	subject
	load   load
	length time.Duration
	redis  *redis.Client
	rounds int
}

// Round implements [harness.Instance]. Each has keys of its own: what was denied in the
// one before is still remembered. Other contenders have the same keys, and are forgotten.
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	in.rounds++
	if err := in.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	if err := in.warmUp(ctx); err != nil {
		return nil, err
	}
	calls, err := in.storeCalls(ctx)
	if err != nil {
		return nil, err
	}
	used, err := in.cpu()
	if err != nil {
		return nil, err
	}
	s, err := in.load(ctx, in.subject, fmt.Sprint("r", in.rounds), in.length)
	if err != nil {
		return nil, err
	}
	cpu, err := in.cpu()
	if err != nil {
		return nil, err
	}
	after, err := in.storeCalls(ctx)
	if err != nil {
		return nil, err
	}
	return s.metrics(after-calls, cpu-used), s.checkAdmitted(in.length)
}

// warmUp makes connections and loads scripts. What is wrong then is wrong later, too.
func (in *instance) warmUp(ctx context.Context) error {
	_, err := in.load(ctx, in.subject, fmt.Sprint("warm", in.rounds), 200*time.Millisecond)
	if errors.Is(err, harness.ErrWrong) {
		return nil
	}
	return err
}

func (s *sample) metrics(calls int, cpu time.Duration) map[string]float64 {
	slices.Sort(s.latencies)
	sum := 0.0
	for _, l := range s.latencies {
		sum += l
	}
	n := len(s.latencies)
	return map[string]float64{
		"throughput":               float64(s.ops) / s.seconds,
		"mean latency":             sum / float64(n),
		"p50 latency":              s.latencies[n/2],
		"p99 latency":              s.latencies[n*99/100],
		"store calls per decision": 100 * float64(calls) / float64(s.ops),
		"server cpu per decision":  cpu.Seconds() * 1e6 / float64(s.ops),
	}
}

// checkAdmitted compares what was admitted with the windows that began in the round, which on a
// machine that is busy may have lasted longer than it should.
func (s *sample) checkAdmitted(length time.Duration) error {
	took := max(length, time.Duration(s.seconds*float64(time.Second)))
	least, most := int(length/per+1)*limit, int(took/per+1)*limit
	if len(s.admitted) == 1 {
		least, most = least*subjects, most*subjects
	}
	for _, n := range s.admitted {
		if n < least || n > most {
			return fmt.Errorf("%w: admitted %v, allowed were %d to %d in %.2f s", harness.ErrWrong, s.admitted, least, most, s.seconds)
		}
	}
	return nil
}
