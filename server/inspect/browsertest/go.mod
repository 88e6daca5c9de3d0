module github.com/lazyreq/lazyreq/server/inspect/browsertest

go 1.26.0

require (
	github.com/chromedp/chromedp v0.23.0
	github.com/lazyreq/lazyreq v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/chromedp/cdproto v0.159.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/lazyreq/lazyreq => ../../..
