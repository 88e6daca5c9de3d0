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
	//go:embed peek.lua
	peekLua string
	//go:embed revoke.lua
	revokeLua string
	//go:embed index_add.lua
	indexAddLua string
	//go:embed index_list.lua
	indexListLua string
	//go:embed index_drop.lua
	indexDropLua string

	loadScript      = redispipe.NewRecordScript(recordLua + loadLua)
	commitScript    = redispipe.NewRecordScript(recordLua + commitLua)
	destroyScript   = redispipe.NewRecordScript(recordLua + destroyLua)
	peekScript      = redispipe.NewRecordScript(recordLua + peekLua)
	revokeScript    = redispipe.NewRecordScript(recordLua + revokeLua)
	indexAddScript  = redispipe.NewRecordScript(indexAddLua)
	indexListScript = redispipe.NewScript(indexListLua)
	indexDropScript = redispipe.NewRecordScript(indexDropLua)
)

// What the scripts return.
const (
	done       = int64(1)
	notFound   = int64(0) // or another digest, or another user's
	exists     = int64(-1)
	tooLarge   = int64(-2)
	conflict   = int64(-3)
	notCounter = int64(-4)
)
