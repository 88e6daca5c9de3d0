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
	//go:embed remove.lua
	removeLua string
	//go:embed index_add.lua
	indexAddLua string
	//go:embed index_list.lua
	indexListLua string
	//go:embed index_drop.lua
	indexDropLua string

	loadScript      = redispipe.NewScript(loadLua)
	commitScript    = redispipe.NewRecordScript(recordLua + commitLua)
	removeScript    = redispipe.NewRecordScript(recordLua + removeLua)
	indexAddScript  = redispipe.NewRecordScript(indexAddLua)
	indexListScript = redispipe.NewScript(indexListLua)
	indexDropScript = redispipe.NewRecordScript(indexDropLua)
)
