// Package apidoc serves the OpenAPI document of Parley's own routes and the AsyncAPI document of its sockets.
package apidoc

import (
	_ "embed"
	"net/http"
)

//go:generate go run parley/cmd/apidocs .

var (
	//go:embed openapi.json
	openAPI []byte
	//go:embed asyncapi.json
	asyncAPI []byte
)

// Routes returns the routes to serve. The documents have no secrets and need no credential.
func Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"GET /api/openapi.json": serve(openAPI),
		"GET /api/asyncapi.json": serve(asyncAPI)}
}

func serve(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(document) // an error means that the client has gone
	}
}
