package redisstore

import (
	_ "embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

var (
	//go:embed record.lua
	recordLua string
	//go:embed load.lua
	loadLua string
	//go:embed commit.lua
	commitLua string
	//go:embed destroy.lua
	destroyLua string

	loadScript    = redispipe.NewScript(recordLua + loadLua)
	commitScript  = redispipe.NewScript(recordLua + commitLua)
	destroyScript = redispipe.NewScript(recordLua + destroyLua)
)

// What the scripts answer. Load answers notFound or when it was created.
const (
	done     = int64(1)
	notFound = int64(0) // or another digest
	exists   = int64(-1)
	tooLarge = int64(-2)
)
