package redispipe

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// Script is a Lua script. It is immutable.
type Script struct {
	src, sha string
	ints     bool
}

// NewScript returns the script with this source, whose reply is an array. An error must be the
// whole reply: at some errors inside an array go-redis stops reading, and takes the rest of it for
// the replies of other calls.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
}

//go:embed record.lua
var recordLua string

// NewRecordScript is [NewScript] for a script on a record, a key that holds one thing of a store.
// record.lua, which has functions for such scripts, goes in front of the source.
func NewRecordScript(src string) *Script { return NewScript(recordLua + src) }

// NewIntScript returns the script with this source, whose reply is an array of integers.
func NewIntScript(src string) *Script {
	s := NewScript(src)
	s.ints = true
	return s
}

// Source returns the script's source.
func (s *Script) Source() string { return s.src }

// Batch is a script that does the same to each of its keys, such as a take by one rule. Calls
// of one Batch, by its address, share an EVALSHA:
//
//	KEYS   the keys
//	ARGV   Args, and then for each key n and the number of equal calls, or nothing if all of
//	       that is 1
//	Reply  one integer for all calls, such as the time, and then Width integers for each key
//
// The script must not raise an error for what is wrong with one key.
type Batch struct {
	Script *Script // made by NewIntScript
	Args   []any   // strings and numbers; they must not change
	Width  int
	Max    int  // the largest number of keys in one EVALSHA; Redis does nothing else meanwhile
	Join   bool // whether equal calls of a key are one entry
}
