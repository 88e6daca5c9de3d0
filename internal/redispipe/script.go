package redispipe

import (
	"crypto/sha1"
	_ "embed" // the frame
	"encoding/hex"
)

//go:embed frame.lua
var frameLua string

// Script is a Lua script that runs any number of calls: those of one moment, of
// whatever callers, are one EVALSHA. Its source comes after frame.lua, which says how
// the calls come and what is there to read them. For each call it reads the call's
// arguments, and returns one array with the elements of all in order.
//
// An error that the script raises is the error of all its calls, and those before it
// have run. What concerns one call only, such as a key of another type, is that call's
// reply.
//
// A Script is immutable.
type Script struct {
	src, sha string
	ints     bool
}

// NewScript returns the script with this source, whose reply has elements of any type.
// A call whose first element is an error reply fails with that.
func NewScript(src string) *Script { return newScript(src, false) }

// NewIntScript returns the script with this source, whose reply has integers only.
func NewIntScript(src string) *Script { return newScript(src, true) }

func newScript(src string, ints bool) *Script {
	src = frameLua + src
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &Script{src: src, sha: hex.EncodeToString(sum[:]), ints: ints}
}

// Hash returns the name by which Redis knows the script.
func (s *Script) Hash() string { return s.sha }

// Source returns the script itself, with its frame.
func (s *Script) Source() string { return s.src }

// Head is what many calls say alike, such as a rule. Calls that are one EVALSHA and
// have the same Head, by its address, send it once. It is immutable.
type Head struct{ values []any }

// NewHead returns the head with these values: strings and numbers.
func NewHead(values ...any) *Head { return &Head{values} }
