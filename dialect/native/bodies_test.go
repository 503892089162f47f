package native

import (
	"net/http"
	"testing"

	"parley/dialect/dialecttest"
)

func TestSlowBodies(t *testing.T) {
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc { return handler(&door{}).Routes() },
		dialecttest.Body{Path: "/api/v1/sessions", JSON: `{"title":"A title"}`, Nobody: "X-Nobody: 1"})
}
