package redisstore

import (
	_ "embed" // the scripts

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

var (
	//go:embed record.lua
	recordLua string
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

	issueScript   = redispipe.NewScript(recordLua + tokenLua + issueLua)
	useScript     = redispipe.NewScript(recordLua + tokenLua + useLua)
	inspectScript = redispipe.NewScript(recordLua + tokenLua + inspectLua)
	revokeScript  = redispipe.NewScript(recordLua + tokenLua + revokeLua)
	acquireScript = redispipe.NewScript(recordLua + leaseLua + acquireLua)
	renewScript   = redispipe.NewScript(recordLua + leaseLua + renewLua)
	releaseScript = redispipe.NewScript(recordLua + leaseLua + releaseLua)
	holderScript  = redispipe.NewScript(recordLua + leaseLua + holderLua)
)
