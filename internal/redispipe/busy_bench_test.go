package redispipe

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// BenchmarkBesideBusyGoroutines shows the p99 of a lone read beside 500 goroutines that are always
// ready to run, against that of plain go-redis, in turn; -benchtime=2000x.
func BenchmarkBesideBusyGoroutines(b *testing.B) {
	client := testhost.StartRedis(b).Client(nil)
	p, err := open(client)
	require.NoError(b, err)
	script := NewScript("return {redis.call('GET', KEYS[1])}")
	sha, err := client.ScriptLoad(b.Context(), script.Source()).Result()
	require.NoError(b, err)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	for range 500 {
		go func() {
			for ctx.Err() == nil {
				for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
				}
				runtime.Gosched()
			}
		}()
	}
	took := map[string][]time.Duration{}
	measure := func(name string, read func() error) {
		began := time.Now()
		if err := read(); err != nil && err != redis.Nil {
			b.Fatal(err)
		}
		took[name] = append(took[name], time.Since(began))
	}
	for b.Loop() {
		measure("pipe", func() error {
			_, err := p.Run(ctx, 10*time.Second, Call{Script: script, Keys: []string{"k"}})
			return err
		})
		measure("plain", func() error { return client.EvalSha(ctx, sha, []string{"k"}).Err() })
	}
	p99 := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])*99/100])
	}
	b.ReportMetric(p99("pipe")/1000, "pipe-p99-µs")
	b.ReportMetric(p99("plain")/1000, "plain-p99-µs")
	b.ReportMetric(p99("pipe")/p99("plain"), "x-plain")
}
