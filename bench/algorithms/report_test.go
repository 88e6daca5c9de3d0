package algorithms

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var measured = sync.OnceValues(measure)

func measuredReport(t *testing.T) report {
	r, err := measured()
	require.NoError(t, err)
	return r
}

// TestSearchReachesTheBounds has rules of the document's size, where not everything
// can be tried. Of a union, only up to one Per: beyond, its bound isn't tight.
func TestSearchReachesTheBounds(t *testing.T) {
	for _, o := range measuredReport(t).over {
		for i, w := range windowLengths() {
			require.LessOrEqual(t, o.found[i], o.theoreticalMax(w), "%s, %v", o.name, w)
			if len(o.rules) == 1 || w <= Per {
				require.Equal(t, o.theoreticalMax(w), o.found[i], "%s, %v", o.name, w)
			}
		}
	}
}

// TestWhatTheTextSaysOfTooMuch checks the sentences of docs/algorithms.md.
func TestWhatTheTextSaysOfTooMuch(t *testing.T) {
	inPer := map[string]int64{
		"FixedWindow": 2*Limit - 1, "GCRA, burst 100": 2*Limit - 1, "GCRA, burst 25": Limit + 24,
		"GCRA 10/s and FixedWindow": 2*Limit - 1,
	}
	for _, o := range measuredReport(t).over {
		want, more := inPer[o.name]
		if more {
			require.Equal(t, want, o.maxInWindow(Per), o.name)
			continue
		}
		require.EqualValues(t, Limit, o.maxInWindow(Per), o.name)
		for i, w := range windowLengths() {
			require.LessOrEqual(t, o.found[i], exactMax(w), "%s, %v", o.name, w)
			if o.name == "SlidingLog" {
				require.Equal(t, exactMax(w), o.found[i], w)
			}
		}
	}
}

func TestWhatTheTextSaysOfTooLittle(t *testing.T) {
	for _, s := range measuredReport(t).strict {
		interval := s.rules[0].Interval()
		require.InDelta(t, Limit*float64(Per)/float64(Per+interval), s.patient, 1e-9, s.name)
		if interval > 0 {
			require.Equal(t, Per+interval, s.pause, s.name)
		} else {
			require.Equal(t, 1.0, s.shares[evenly][slices.Index(clientLoads(), 1)], s.name)
		}
	}
}

func TestDocumentHasTheFigures(t *testing.T) {
	text, err := os.ReadFile("../../docs/algorithms.md")
	require.NoError(t, err)
	r := measuredReport(t)
	require.Contains(t, string(text), r.overTable(), "go run . -algorithms prints what it should have")
	require.Contains(t, string(text), r.strictTable(), "go run . -algorithms prints what it should have")
}

func TestPicturesShowEachRule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r := measuredReport(t)
	require.NoError(t, r.save(dir))
	for _, name := range []string{"over.svg", "strict.svg"} {
		for _, path := range []string{filepath.Join(dir, name), filepath.Join("../../docs/algorithms", name)} {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, s := range allSubjects() {
				require.Contains(t, string(text), s.name, path)
			}
		}
	}
}

func TestWorstIsOfAHalfOpenWindow(t *testing.T) {
	charges := []charge{{0, 3}, {2 * time.Second, 1}, {5 * time.Second, 4}, {5 * time.Second, 1}}
	for w, want := range map[time.Duration]int64{
		tick: 5, 3 * time.Second: 5, 3*time.Second + tick: 6, 5 * time.Second: 6, 5*time.Second + tick: 9,
	} {
		require.Equal(t, want, maxUnitsIn(charges, w), w)
	}
	require.Zero(t, maxUnitsIn(nil, Per))
}

func TestHonestClientsAskForTheirLoad(t *testing.T) {
	for name, come := range honest {
		comes := come(rand.New(rand.NewPCG(seed, 0)), 0.8, long)
		require.InEpsilon(t, 0.8*Limit*float64(long/Per), len(comes), 0.05, name)
		require.True(t, slices.IsSorted(comes), name)
		require.Less(t, comes[len(comes)-1], long, name)
	}
}
