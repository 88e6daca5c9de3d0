module github.com/lazyreq/lazyreq/examples/chi

go 1.26.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/lazyreq/lazyreq v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/lazyreq/lazyreq => ../..
