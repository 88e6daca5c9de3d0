package reqctx_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/reqctx"
)

const pageArticles = 20

// page is a registry with four batches, and the number of calls of their functions.
type page struct {
	reg     *reqctx.Registry
	batches []reqctx.Batch[int, int]
	calls   atomic.Int64
}

// newPage returns a page whose calls take so long.
func newPage(takes time.Duration) *page {
	p := &page{reg: quiet()}
	for _, name := range []string{"author", "topic", "comments", "likes"} {
		b := reqctx.NewBatch[int, int](name)
		reqctx.ProvideBatch(p.reg, b, func(_ context.Context, ids []int) (map[int]int, error) {
			p.calls.Add(1)
			if takes > 0 {
				<-time.After(takes)
			}
			found := make(map[int]int, len(ids))
			for _, id := range ids {
				found[id] = id
			}
			return found, nil
		})
		p.batches = append(p.batches, b)
	}
	return p
}

// readAll reads the page list by list.
func (p *page) readAll(c *reqctx.Host) error {
	ids := make([]int, pageArticles)
	for i := range ids {
		ids[i] = i
	}
	for _, b := range p.batches {
		if _, err := b.GetAll(c, ids); err != nil {
			return err
		}
	}
	return nil
}

// readEach reads the page article by article, each in a goroutine.
func (p *page) readEach(c *reqctx.Host) error {
	articles, ctx := errgroup.WithContext(c)
	for i := range pageArticles {
		articles.Go(func() error {
			for _, b := range p.batches {
				if _, err := b.Get(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return articles.Wait()
}

func TestPageByListsIsFourCalls(t *testing.T) {
	p := newPage(0)
	c := reqctx.New(t.Context(), p.reg)
	require.NoError(t, p.readAll(c))
	require.EqualValues(t, 4, p.calls.Load())
	require.NoError(t, p.readAll(c))
	require.NoError(t, p.readEach(c))
	require.EqualValues(t, 4, p.calls.Load(), "kept for the request")
	require.NoError(t, c.Finish())
}

// BenchmarkPage reports how many calls of the functions a page of 20 articles makes that
// reads from four batches, in the median and in the worst tenth of the pages.
func BenchmarkPage(b *testing.B) {
	for _, bm := range []struct {
		name  string
		takes time.Duration
		read  func(*page, *reqctx.Host) error
	}{
		{"GetAll", 0, (*page).readAll},
		{"goroutines", 0, (*page).readEach},
		{"goroutines-1ms", time.Millisecond, (*page).readEach},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p := newPage(bm.takes)
			var calls []int64
			for b.Loop() {
				before := p.calls.Load()
				c := reqctx.New(b.Context(), p.reg)
				if err := bm.read(p, c); err != nil {
					b.Fatal(err)
				}
				calls = append(calls, p.calls.Load()-before)
				if err := c.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(calls)
			b.ReportMetric(float64(calls[len(calls)/2]), "calls/page")
			b.ReportMetric(float64(calls[len(calls)*9/10]), "calls-p90/page")
		})
	}
}
