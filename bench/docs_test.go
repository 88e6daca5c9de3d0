package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	// What only the pages use.
	_ "github.com/coder/websocket"
	_ "github.com/rs/cors"
	_ "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	_ "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// These pages' blocks use packages that the library doesn't require.
func TestDocumentedGo(t *testing.T) {
	pages, err := filepath.Glob("../docs/coming-from-*.md")
	require.NoError(t, err)
	doccheck.Test(t, append(pages, "../docs/recipes.md")...)
}
