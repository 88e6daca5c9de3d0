package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// Transport is an [http.RoundTripper] for clients of an API that has a limit. Before it sends a request, it waits for the
// quota of its Queue. If the server answers with a 429 that says how long to wait, Transport waits and sends the request
// again. Meanwhile, the other requests with the same key wait, too. They also wait after a 503 with Retry-After, but a
// request that got a 503 is not repeated.
//
// A 429 says how long to wait with Retry-After, in seconds or as a date, or with the RateLimit field of
// draft-ietf-httpapi-ratelimit-headers-10. The longest of the waits counts. The caller gets the 429 if it says nothing
// about the wait, if the wait would be longer than MaxWait or end after the context's deadline, after MaxRepeats, and if
// the request has a body without GetBody.
//
// A Transport is safe for concurrent use. Its fields must not be changed after the first request.
type Transport struct {
	// Queue limits the requests. The zero value means that only the server limits them.
	Queue *Queue
	// Base sends the requests. The zero value means [http.DefaultTransport].
	Base http.RoundTripper
	// Key returns the key of a request, such as the user of the API. The zero value means the host of the URL.
	Key func(r *http.Request) string
	// MaxWait is the longest time for which a server's answer makes requests wait. The zero value means one minute.
	MaxWait time.Duration
	// MaxRepeats is how often a request is repeated at most. The zero value means 3. A negative value means never.
	MaxRepeats int

	mu    sync.Mutex
	holds map[string]time.Time // for each key, the time until which its requests wait
	sweep int                  // the number of holds at which those that are over are removed
}

// RoundTrip sends a request as described at [Transport]. If the wait would exceed the context's deadline, it returns
// [ErrTooLong] at once. If another request gets a 429 or a 503 while this one waits in the Queue, it may instead wait
// until the deadline.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, key := t.Base, r.URL.Host
	if base == nil {
		base = http.DefaultTransport
	}
	if t.Key != nil {
		key = t.Key(r)
	}
	for attempt, send := 0, r; ; attempt++ {
		if err := t.wait(r.Context(), key); err != nil {
			if send.Body != nil {
				_ = send.Body.Close()
			}
			return nil, err
		}
		res, err := base.RoundTrip(send)
		if err != nil {
			return nil, err
		}
		again := t.repetition(r, res, key, attempt)
		if again == nil {
			return res, nil
		}
		discard(res.Body)
		send = again
	}
}

// discard reads the rest of a short body, so that the connection can be used again. It closes the body after a second,
// because the server may not end it.
func discard(body io.ReadCloser) {
	late := time.AfterFunc(time.Second, func() { _ = body.Close() })
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	if late.Stop() {
		_ = body.Close()
	}
}

// repetition makes the key's requests wait if the answer says so. It returns the request to send after the wait, or nil if
// the caller gets the answer.
func (t *Transport) repetition(r *http.Request, res *http.Response, key string, attempt int) *http.Request {
	wait, known := waitOf(res)
	if !known {
		return nil
	}
	longest := cmp.Or(t.MaxWait, time.Minute)
	t.hold(key, min(wait, longest))
	deadline, limited := r.Context().Deadline()
	switch {
	case res.StatusCode != http.StatusTooManyRequests, attempt >= cmp.Or(t.MaxRepeats, 3), wait > longest,
		limited && time.Until(deadline) < wait:
		return nil
	case r.Body == nil || r.Body == http.NoBody:
		return r
	case r.GetBody == nil:
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	again := r.Clone(r.Context())
	again.Body = body
	return again
}

// wait waits until no answer makes the key's requests wait, and for the quota.
func (t *Transport) wait(ctx context.Context, key string) error {
	held := func(ctx context.Context) error { return t.waitHold(ctx, key) }
	if err := held(ctx); err != nil || t.Queue == nil {
		return err
	}
	if _, err := t.Queue.wait(ctx, key, 1, held); err != nil {
		return err
	}
	return held(ctx) // of an answer during the call of the store
}

func (t *Transport) waitHold(ctx context.Context, key string) error {
	for {
		t.mu.Lock()
		wait := time.Until(t.holds[key])
		t.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return fmt.Errorf("%w: %w", ErrTooLong, &ratelimit.DeniedError{RetryAfter: wait})
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// hold makes the key's requests wait. Whenever the number of holds has doubled, it removes those that are over.
func (t *Transport) hold(key string, wait time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == nil {
		t.holds = map[string]time.Time{}
	}
	if len(t.holds) >= t.sweep {
		maps.DeleteFunc(t.holds, func(_ string, until time.Time) bool { return !until.After(now) })
		t.sweep = 2*len(t.holds) + 100
	}
	if until := now.Add(wait); until.After(t.holds[key]) {
		t.holds[key] = until
	}
}

// waitOf returns the time to wait that a 429 or a 503 asks for.
func waitOf(res *http.Response) (wait time.Duration, known bool) {
	after := res.Header.Get("Retry-After")
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		for member := range strings.SplitSeq(strings.Join(res.Header.Values("RateLimit"), ","), ",") {
			if t, ok := exhausted(member); ok {
				wait, known = max(wait, t), true
			}
		}
	case http.StatusServiceUnavailable:
	default:
		return 0, false
	}
	if t, ok := seconds(after); ok {
		return max(wait, t), true
	} else if date, err := http.ParseTime(after); err == nil {
		return max(wait, time.Until(date)), true
	}
	return wait, known
}

// exhausted returns the parameter t of a member of the RateLimit field, such as "search";r=0;t=30, if no unit remains.
func exhausted(member string) (wait time.Duration, ok bool) {
	remaining := ""
	for param := range strings.SplitSeq(member, ";") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(param), "="); name {
		case "r":
			remaining = value
		case "t":
			wait, ok = seconds(value)
		}
	}
	return wait, ok && remaining == "0"
}

// seconds returns a duration that is written as a number of seconds, at most the longest duration.
func seconds(s string) (time.Duration, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	ok := err == nil || errors.Is(err, strconv.ErrRange)
	return time.Duration(min(n, math.MaxInt64/uint64(time.Second))) * time.Second, ok
}
