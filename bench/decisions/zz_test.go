package decisions

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestZZ(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(nil)
	only := os.Getenv("ONLY")
	callersList := []int{64, 256}
	names := strings.Fields("store rueidislimiter")
	for _, keys := range []string{"many", "hot"} {
		for _, callers := range callersList {
			if only != "" && only != fmt.Sprint(keys, callers) {
				continue
			}
			size := 1
			if keys == "many" {
				size = many
			}
			vals := map[string][]float64{}
			allocs := map[string]float64{}
			extra := map[string]string{}
			for range 5 {
				for _, c := range contenders() {
					n := strings.ReplaceAll(c.name, " ", "_")
					found := false
					for _, x := range names {
						found = found || x == n
					}
					if !found {
						continue
					}
					in, err := open(c, server.Addr, client, load{size: size, callers: callers}, 200*time.Millisecond)
					if err != nil {
						t.Fatal(err)
					}
					v, err := in.Round(t.Context())
					if err != nil {
						t.Log(n, err)
					}
					vals[n] = append(vals[n], v["throughput"])
					allocs[n] = v["allocations per decision"]
					extra[n] = fmt.Sprintf("%.2f/%.1f/%.1f", v["redis commands per decision"], v["redis cpu per decision"], v["client cpu per decision"])
					in.Close()
				}
			}
			line := ""
			best := 0.0
			for _, n := range names {
				sort.Float64s(vals[n])
				m := vals[n][2]
				line += fmt.Sprintf(" %s=%.0fk(%.1f %s)", n, m/1000, allocs[n], extra[n])
				if n != "INCR" && !strings.HasPrefix(n, "store") && n != "one_call_each" && m > best {
					best = m
				}
			}
			fmt.Printf("%s/%d: ratio %.2f  %s\n", keys, callers, vals["store"][2]/best, line)
		}
	}
}
