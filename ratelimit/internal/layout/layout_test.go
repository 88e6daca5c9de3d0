package layout

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func knownLayouts() int {
	knownMu.Lock()
	defer knownMu.Unlock()
	return len(known)
}

func TestUnusedLayoutsAreForgotten(t *testing.T) {
	kept := Intern(Layout{Limit: 1})
	for limit := range int64(1000) {
		Intern(Layout{Limit: limit})
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return knownLayouts() == 1
	}, 10*time.Second, time.Millisecond)
	require.Same(t, kept, Intern(Layout{Limit: 1}), "it is in use")
}
