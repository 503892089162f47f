package eventbus

import (
	"net/http"
	"testing"

	"parley/dialect/dialecttest"
)

func TestSlowBodies(t *testing.T) {
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc { return handler(&door{}).Routes() },
		dialecttest.Body{Path: "/api/chat", JSON: `{"message":"Hello"}`, Nobody: "X-User: nobody"})
}
