package redisstore

import (
	_ "embed"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

var (
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

	issueScript   = redispipe.NewRecordScript(tokenLua + issueLua)
	useScript     = redispipe.NewRecordScript(tokenLua + useLua)
	inspectScript = redispipe.NewRecordScript(tokenLua + inspectLua)
	revokeScript  = redispipe.NewRecordScript(tokenLua + revokeLua)
	acquireScript = redispipe.NewRecordScript(leaseLua + acquireLua)
	renewScript   = redispipe.NewRecordScript(leaseLua + renewLua)
	releaseScript = redispipe.NewRecordScript(leaseLua + releaseLua)
	holderScript  = redispipe.NewRecordScript(leaseLua + holderLua)
)
