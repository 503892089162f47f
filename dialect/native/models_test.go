package native

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

func TestModels(t *testing.T) {
	h := handler(&door{})
	get := func() string {
		w := httptest.NewRecorder()
		h.Routes()["GET /api/v1/models"](w, httptest.NewRequest("GET", "/api/v1/models", nil))
		return strings.TrimSpace(w.Body.String())
	}
	if got := get(); got != `[]` {
		t.Errorf("%s", got)
	}
	h.Models = func(_ context.Context, byDefault string) ([]port.ModelInfo, error) {
		return []port.ModelInfo{{ID: "m", Provider: "openai", Default: byDefault == "", Window: 8, InputPrice: 0.5,
			OutputPrice: 2}, {ID: "demo", Provider: "demo"}}, nil
	}
	if got := get(); got != `[{"id":"m","provider":"openai","default":true,"context_window":8,"input_price":0.5,`+
		`"output_price":2},{"id":"demo","provider":"demo","default":false}]` {
		t.Errorf("%s", got)
	}
	h.Door = &door{refusal: parley.Errorf(parley.CodeForbidden, "no")}
	if got := get(); !strings.Contains(got, `"forbidden"`) {
		t.Errorf("%s", got)
	}
}
