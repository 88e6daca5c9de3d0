package redisinfo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Info is what a Redis has done since it began.
type Info struct {
	CPU   time.Duration // user and system
	Bytes int           // that it has received and sent
	// Calls is how often each command ran, by its name in lower case, those that a
	// script ran included.
	Calls map[string]int
}

// Read asks for it.
func Read(ctx context.Context, client redis.UniversalClient) (Info, error) {
	text, err := client.Info(ctx, "cpu", "stats", "commandstats").Result()
	if err != nil {
		return Info{}, err
	}
	return parse(text)
}

func parse(text string) (Info, error) {
	info := Info{Calls: map[string]int{}}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		command, ofCommand := strings.CutPrefix(name, "cmdstat_")
		var err error
		switch {
		case ofCommand:
			first, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			info.Calls[command], err = strconv.Atoi(first)
		case name == "total_net_input_bytes" || name == "total_net_output_bytes":
			var n int
			n, err = strconv.Atoi(value)
			info.Bytes += n
		case name == "used_cpu_user" || name == "used_cpu_sys":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			info.CPU += time.Duration(seconds * float64(time.Second))
		}
		if err != nil {
			return Info{}, fmt.Errorf("redisinfo: %s: %w", name, err)
		}
	}
	return info, nil
}

// Sum returns how often these commands ran together; one that is named twice counts twice.
func (i Info) Sum(commands []string) int {
	n := 0
	for _, c := range commands {
		n += i.Calls[c]
	}
	return n
}
