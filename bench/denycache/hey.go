package denycache

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// httpLoad is the load of hey: so many requests a second, or as many as there can be if
// that is 0.
func httpLoad(rate int) load {
	return func(ctx context.Context, s subject, round string, length time.Duration) (sample, error) {
		url, err := s.startServer(ctx)
		if err != nil {
			return sample{}, err
		}
		args := []string{"-z", length.String(), "-c", strconv.Itoa(inFlight), "-o", "csv"}
		if rate > 0 {
			args = append(args, "-q", strconv.Itoa(rate/inFlight))
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "hey", append(args, url+"/"+round)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return sample{}, fmt.Errorf("hey: %w: %s", err, &stderr)
		}
		return parseHeyOutput(bytes.NewReader(out))
	}
}

// requireHey returns an error if there is none.
func requireHey() error {
	if _, err := exec.LookPath("hey"); err != nil {
		return fmt.Errorf("%w: no hey on this machine", harness.ErrMissing)
	}
	return nil
}

// columns of hey's table: what the response took and when the request was sent, in
// seconds, and its status.
const (
	tookColumn   = 0
	statusColumn = 6
	offsetColumn = 7
)

// parseHeyOutput sums up hey's table, a line for each request.
func parseHeyOutput(r io.Reader) (sample, error) {
	lines, err := csv.NewReader(r).ReadAll()
	switch {
	case err != nil:
		return sample{}, fmt.Errorf("hey: %w", err)
	case len(lines) < 2:
		return sample{}, fmt.Errorf("%w: hey got no response", harness.ErrWrong)
	}
	s := sample{admitted: []int{0}}
	for _, line := range lines[1:] {
		took, err := strconv.ParseFloat(line[tookColumn], 64)
		if err != nil {
			return s, fmt.Errorf("hey: %w", err)
		}
		offset, err := strconv.ParseFloat(line[offsetColumn], 64)
		if err != nil {
			return s, fmt.Errorf("hey: %w", err)
		}
		switch line[statusColumn] {
		case strconv.Itoa(http.StatusOK):
			s.admitted[0]++
		case strconv.Itoa(http.StatusTooManyRequests):
		default:
			return s, fmt.Errorf("%w: status %s", harness.ErrWrong, line[statusColumn])
		}
		s.ops++
		s.latencies = append(s.latencies, took*1e6)
		s.seconds = max(s.seconds, offset+took)
	}
	return s, nil
}
