package redisstore

import (
	"embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

//go:embed *.lua
var files embed.FS

var (
	loadScript      = redispipe.ReadScript(files, "load.lua")
	commitScript    = redispipe.ReadScript(files, "prelude.lua", "record.lua", "commit.lua")
	removeScript    = redispipe.ReadScript(files, "prelude.lua", "record.lua", "remove.lua")
	indexAddScript  = redispipe.ReadScript(files, "prelude.lua", "index_add.lua")
	indexListScript = redispipe.ReadScript(files, "index_list.lua")
	indexDropScript = redispipe.ReadScript(files, "prelude.lua", "index_drop.lua")
)
