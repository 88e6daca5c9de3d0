package redisstore

import (
	_ "embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

var (
	//go:embed prelude.lua
	preludeLua string
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
	commitScript    = redispipe.NewScript(preludeLua + recordLua + commitLua)
	removeScript    = redispipe.NewScript(preludeLua + recordLua + removeLua)
	indexAddScript  = redispipe.NewScript(preludeLua + indexAddLua)
	indexListScript = redispipe.NewScript(indexListLua)
	indexDropScript = redispipe.NewScript(preludeLua + indexDropLua)
)
