package redisstore

import (
	_ "embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

var (
	//go:embed prelude.lua
	preludeLua string
	//go:embed token.lua
	tokenLua string
	//go:embed issue.lua
	issueLua string
	//go:embed use.lua
	useLua string
	//go:embed inspect.lua
	inspectLua string
	//go:embed revoke.lua
	revokeLua string
	//go:embed lease.lua
	leaseLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
	//go:embed holder.lua
	holderLua string

	issueScript   = redispipe.NewScript(preludeLua + tokenLua + issueLua)
	useScript     = redispipe.NewScript(preludeLua + tokenLua + useLua)
	inspectScript = redispipe.NewScript(preludeLua + tokenLua + inspectLua)
	revokeScript  = redispipe.NewScript(preludeLua + tokenLua + revokeLua)
	acquireScript = redispipe.NewScript(preludeLua + leaseLua + acquireLua)
	renewScript   = redispipe.NewScript(preludeLua + leaseLua + renewLua)
	releaseScript = redispipe.NewScript(preludeLua + leaseLua + releaseLua)
	holderScript  = redispipe.NewScript(preludeLua + leaseLua + holderLua)
)
