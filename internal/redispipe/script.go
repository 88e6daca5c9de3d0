package redispipe

import (
	"crypto/sha1"
	_ "embed" // the frames
	"encoding/hex"
)

var (
	//go:embed frame.lua
	frameLua string
	//go:embed list.lua
	listLua string
)

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
	each     int // bytes of the reply for each key of a list, 0 if its calls aren't lists
}

// NewScript returns the script with this source, whose reply has elements of any type.
// A call whose first element is an error reply fails with that.
func NewScript(src string) *Script { return newScript(frameLua + src) }

// NewIntScript returns the script with this source, whose reply has integers only.
func NewIntScript(src string) *Script {
	s := newScript(frameLua + src)
	s.ints = true
	return s
}

// NewListScript returns the script with this source, which does one thing to any number of
// keys: its calls are lists, which say nothing but a head, the keys, and numbers for each
// key, and it returns a string with so many bytes for each key. Its frame is list.lua. The
// lists with one head become one, those with others stand one after another.
func NewListScript(src string, each int) *Script {
	s := newScript(listLua + src)
	s.each = each
	return s
}

func newScript(src string) *Script {
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
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
