package redisstore

import (
	"embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

//go:embed *.lua
var files embed.FS

var (
	issueScript   = redispipe.ReadScript(files, "prelude.lua", "token.lua", "issue.lua")
	useScript     = redispipe.ReadScript(files, "prelude.lua", "token.lua", "use.lua")
	inspectScript = redispipe.ReadScript(files, "prelude.lua", "token.lua", "inspect.lua")
	revokeScript  = redispipe.ReadScript(files, "prelude.lua", "token.lua", "revoke.lua")
	acquireScript = redispipe.ReadScript(files, "prelude.lua", "lease.lua", "acquire.lua")
	renewScript   = redispipe.ReadScript(files, "prelude.lua", "lease.lua", "renew.lua")
	releaseScript = redispipe.ReadScript(files, "prelude.lua", "lease.lua", "release.lua")
)
