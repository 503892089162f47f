package eventbus

import (
	"net/http"
	"testing"

	"parley/dialect/dialecttest"
)

func TestSlowBodies(t *testing.T) {
	for path, body := range map[string]string{"/api/chat": `{"message":"Hello"}`, "/api/settings": `{}`} {
		dialecttest.Bodies(t, func() map[string]http.HandlerFunc { return handler(&door{}).Routes() },
			dialecttest.Body{Path: path, JSON: body, Nobody: "X-User: nobody"})
	}
}
