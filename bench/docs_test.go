package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "github.com/ulule/limiter/v3/drivers/middleware/stdlib" // for the pages alone

	// What recipes.md uses.
	_ "github.com/coder/websocket"
	_ "github.com/rs/cors"
	_ "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// These pages' blocks use the packages that are compared.
func TestDocumentedGo(t *testing.T) {
	pages, err := filepath.Glob("../docs/coming-from-*.md")
	require.NoError(t, err)
	doccheck.Test(t, append(pages, "../docs/recipes.md")...)
}
