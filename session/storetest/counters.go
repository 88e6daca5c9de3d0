package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

func addChange(name string, n int64) map[string]storage.Change {
	return map[string]storage.Change{name: {Op: storage.OpAdd, N: n}}
}

func testAddToCounter(t *testing.T, s *subject) {
	d := s.newDelta(newID(), addChange("n", 5))
	d.Create = true
	requireNoError(t, s.store.Commit(t.Context(), d))
	i := id{d.Locator, d.Digest}
	s.requireFields(t, i, map[string]string{"n": "5"})
	for _, n := range []int64{-7, 2, storage.MaxCounter, -storage.MaxCounter, -storage.MaxCounter} {
		requireNoError(t, s.commit(t, i, addChange("n", n)))
	}
	s.requireFields(t, i, map[string]string{"n": strconv.Itoa(-storage.MaxCounter)})
	requireNoError(t, s.commit(t, i, map[string]storage.Change{
		"n": {Op: storage.OpDelete}, "m": {Op: storage.OpAdd}, "s": {Op: storage.OpSet, Value: []byte("41")},
	}))
	requireNoError(t, s.commit(t, i, addChange("s", 1)))
	s.requireFields(t, i, map[string]string{"m": "0", "s": "42"})
}

func testAddToOtherField(t *testing.T, s *subject) {
	fields := map[string]string{
		"word": "x", "empty": "", "fraction": "1.5", "zeros": "007", "plus": "+1", "minus zero": "-0", "space": " 1",
		"hex": "0x1", "exponent": "1e3", "quoted": `"1"`, "most": strconv.Itoa(storage.MaxCounter), "nan": "nan",
		"least": strconv.Itoa(-storage.MaxCounter), "beyond": strconv.Itoa(storage.MaxCounter + 1), "line": "1\n",
		"long": "11111111111111111111111111111111111111111", "big": "9007199254740993",
	}
	i := s.create(t, fields)
	for name := range fields {
		n := int64(1)
		if name == "least" {
			n = -1
		}
		d := s.newDelta(i, addChange(name, n))
		d.Changes["also"] = storage.Change{Op: storage.OpSet, Value: []byte("1")}
		d.Changes["another"] = storage.Change{Op: storage.OpAdd, N: 1}
		if err := s.store.Commit(t.Context(), d); !errors.Is(err, storage.ErrNotCounter) {
			t.Fatalf("adding to %q: %v", fields[name], err)
		}
	}
	s.requireFields(t, i, fields)
}

func testFailedExpectation(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"a": "1", "empty": ""})
	for name, found := range map[string]map[string]storage.Value{
		"another value":    {"a": {Exists: true, Bytes: []byte("2")}},
		"a longer one":     {"a": {Exists: true, Bytes: []byte("1 ")}},
		"nothing there":    {"a": {}},
		"something there":  {"b": {Exists: true}},
		"empty is a value": {"empty": {}},
		"one of two":       {"a": {Exists: true, Bytes: []byte("1")}, "b": {Exists: true, Bytes: []byte("1")}},
	} {
		d := s.newDelta(i, setChange("a", "eve"))
		d.Changes["b"] = storage.Change{Op: storage.OpSet}
		d.Changes["n"] = storage.Change{Op: storage.OpAdd, N: 1}
		d.Expect, d.Rotate = found, newDigest()
		if err := s.store.Commit(t.Context(), d); !errors.Is(err, storage.ErrConflict) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	s.requireFields(t, i, map[string]string{"a": "1", "empty": ""})
	d := s.newDelta(i, setChange("a", "2"))
	d.Expect = map[string]storage.Value{"a": {Exists: true, Bytes: []byte("1")}, "empty": {Exists: true}, "b": {}}
	requireNoError(t, s.store.Commit(t.Context(), d))
	s.requireFields(t, i, map[string]string{"a": "2", "empty": ""})
}

func testConcurrentAdds(t *testing.T, s *subject) {
	const n = 1000
	i := s.create(t, nil)
	race(t, n, n, nil, func(int) error { return s.commit(t, i, addChange("n", 1)) })
	s.requireFields(t, i, map[string]string{"n": fmt.Sprint(n)})
}

func testConcurrentExpectations(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"owner": ""})
	race(t, 50, 1, storage.ErrConflict, func(k int) error {
		d := s.newDelta(i, setChange("owner", fmt.Sprint(k)))
		d.Changes["wins"] = storage.Change{Op: storage.OpAdd, N: 1}
		d.Expect = map[string]storage.Value{"owner": {Exists: true}}
		return s.store.Commit(t.Context(), d)
	})
	rec, err := s.load(t, i)
	requireNoError(t, err)
	if wins := string(rec.Fields["wins"]); wins != "1" {
		t.Fatalf("the store has %s wins", wins)
	}
}
