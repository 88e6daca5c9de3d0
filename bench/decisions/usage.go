package decisions

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what was used up so far.
type usage struct {
	redis, client time.Duration // of processors
	commands      int           // that the contender has sent
}

func (in *instance) usage(ctx context.Context) (u usage, err error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return u, err
	}
	u.client = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	info, err := in.redis.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return u, err
	}
	calls := map[string]int{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		command, ofCommand := strings.CutPrefix(name, "cmdstat_")
		switch {
		case ofCommand:
			first, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if calls[command], err = strconv.Atoi(first); err != nil {
				return u, fmt.Errorf("INFO commandstats: %w", err)
			}
		case name == "used_cpu_user" || name == "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return u, fmt.Errorf("INFO cpu: %w", err)
			}
			u.redis += time.Duration(seconds * float64(time.Second))
		}
	}
	for _, command := range in.sends {
		u.commands += calls[command]
	}
	return u, nil
}
