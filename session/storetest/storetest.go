// Package storetest tests implementations of [session.Store]. The tests of a store call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) session.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// It does not test bounds, eviction or network failures.
package storetest

import (
	"crypto/rand"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

// Host is the environment of the store under test.
type Host struct {
	// Open returns an empty store. It is called once for each case, inside Within. It must use t.Cleanup to close what it
	// opens.
	Open func(t *testing.T) session.Store
	// Advance moves the store's clock forward by d. Only one goroutine calls it.
	Advance func(t *testing.T, d time.Duration)
	// Within calls run, which runs one case. It can be synctest.Test, for example. Nil means a plain call.
	Within func(t *testing.T, run func(t *testing.T))
	// Unit is the unit of time in the cases. Sessions end after 10 units without use, and after 40 units in any case.
	// Remembered sessions end after 60 units. With a real clock, a unit must be long enough for a few calls. Default: 1
	// second.
	Unit time.Duration
}

// Run runs every case as a subtest.
func Run(t *testing.T, h Host) {
	if h.Unit == 0 {
		h.Unit = time.Second
	}
	if h.Within == nil {
		h.Within = func(t *testing.T, run func(t *testing.T)) { run(t) }
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.Within(t, func(t *testing.T) {
				c.run(t, &subject{host: h, store: h.Open(t)})
			})
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s *subject)
}

var cases = []testCase{
	{"a new session is there with its fields", testCreate},
	{"creating never replaces a session", testCreateExisting},
	{"a commit changes only the fields it names", testChangeFields},
	{"any bytes are names and values", testFieldsOfAnyBytes},
	{"later changes of the caller's bytes have no effect", testBytesCopied},
	{"another secret neither reads, writes nor destroys", testWrongSecret},
	{"rotation replaces the secret and keeps the rest", testRotate},
	{"a replaced secret reads during its grace and never writes", testSecretInGrace},
	{"a grace ends at the next rotation", testGraceEndsAtRotation},
	{"a destroyed session stays gone", testDestroy},
	{"additions to a counter add up", testAddToCounter},
	{"adding to a field that is not a counter fails", testAddToOtherField},
	{"an expectation that fails changes nothing", testFailedExpectation},
	{"a bound session is listed, and no other", testListOfUser},
	{"binding moves a session to another user", testBindToOtherUser},
	{"revoked sessions are gone", testRevoke},
	{"sessions that ended leave the list", testListWithoutEnded},
	{"the oldest of too many sessions of a user end", testMaxPerUser},
	{"ended sessions don't count for a user's maximum", testEndedSessionsDontCount},
	{"a touch records the device of a user", testDevice},
	{"an idle session ends", testIdleSessionEnds},
	{"loads and commits keep a session alive", testUseTouches},
	{"loads before the touch is due don't count", testLoadBeforeTouchIsDue},
	{"use doesn't extend the absolute limit", testAbsoluteLimit},
	{"a remembered session outlives the others", testRememberedSession},
	{"the limit of remembered sessions applies as it is now", testChangedRememberedLimit},
	{"longer limits do not bring back a revoked session", testExpiredSessionsEnd},
	{"binding decides again whether a session is remembered", testBindDecidesRemember},
	{"an ended context has no effect", testEndedContext},
	{"1,000 commits of one field each are all kept", testConcurrentFields},
	{"one of many creates of a locator wins", testConcurrentCreates},
	{"one of many rotations wins", testConcurrentRotations},
	{"1,000 additions to one field are all counted", testConcurrentAdds},
	{"one of many that expect the same wins", testConcurrentExpectations},
	{"a user's sessions are revoked while others log in", testRevokeDuringLogins},
	{"a user who logs in many times at once keeps the maximum", testConcurrentLogins},
	{"a session is bound again while it is destroyed", testBindDuringDestroy},
	{"a destroy ends a session during concurrent commits", testDestroyDuringCommits},
}

// subject is the store that a case tests.
type subject struct {
	host  Host
	store session.Store
}

// id is a session's locator and its secret's digest.
type id struct {
	locator storage.Locator
	digest  storage.Digest
}

func newID() (i id) {
	rand.Read(i.locator[:])
	return id{i.locator, newDigest()}
}

func newDigest() (d storage.Digest) {
	rand.Read(d[:])
	return d
}

func (s *subject) timeLimits() storage.Limits {
	return storage.Limits{Idle: s.units(10), Absolute: s.units(40), Touch: s.units(1), Remembered: s.units(60)}
}

func (s *subject) units(n int) time.Duration { return time.Duration(n) * s.host.Unit }

func (s *subject) advance(t *testing.T, units int) {
	t.Helper()
	s.host.Advance(t, s.units(units))
}

func (s *subject) create(t *testing.T, fields map[string]string) id {
	t.Helper()
	i := newID()
	d := s.newDelta(i, setChanges(fields))
	d.Create = true
	requireNoError(t, s.store.Commit(t.Context(), d))
	return i
}

func (s *subject) newDelta(i id, changes map[string]storage.Change) storage.Delta {
	return storage.Delta{Locator: i.locator, Digest: i.digest, Changes: changes, Limits: s.timeLimits()}
}

func (s *subject) commit(t *testing.T, i id, changes map[string]storage.Change) error {
	t.Helper()
	return s.store.Commit(t.Context(), s.newDelta(i, changes))
}

func (s *subject) load(t *testing.T, i id) (storage.Record, error) {
	t.Helper()
	return s.store.Load(t.Context(), i.locator, i.digest, s.timeLimits())
}

// requireFields fails unless the session exists and has exactly these fields.
func (s *subject) requireFields(t *testing.T, i id, want map[string]string) {
	t.Helper()
	rec, err := s.load(t, i)
	requireNoError(t, err)
	got := make(map[string]string, len(rec.Fields))
	for name, v := range rec.Fields {
		got[name] = string(v)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("the session has the fields %.200q, not %.200q", got, want)
	}
}

// requireGone fails if the session can be read or written.
func (s *subject) requireGone(t *testing.T, i id) {
	t.Helper()
	_, err := s.load(t, i)
	requireErrorIs(t, err, storage.ErrNotFound)
	requireErrorIs(t, s.commit(t, i, setChange("revived", "yes")), storage.ErrGone)
	_, err = s.load(t, i)
	requireErrorIs(t, err, storage.ErrNotFound)
}

func setChange(name, value string) map[string]storage.Change {
	return setChanges(map[string]string{name: value})
}

func setChanges(fields map[string]string) map[string]storage.Change {
	changes := make(map[string]storage.Change, len(fields))
	for name, v := range fields {
		changes[name] = storage.Change{Op: storage.OpSet, Value: []byte(v)}
	}
	return changes
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func requireErrorIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got the error %v, not %v", err, want)
	}
}
