// Package google calls Gemini models by the Gemini API.
package google

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"parley/port"
	"parley/provider/upstream"
)

// Name is the provider of the memos.
const Name = "google"

const officialURL = "https://generativelanguage.googleapis.com/"

// version is the path of the API.
const version = "v1beta/"

// path returns the path of a model. Names may begin with a folder, as in the vendor's lists.
func path(model string) string {
	folder, name, found := strings.Cut(model, "/")
	if !found || folder != "models" && folder != "tunedModels" {
		folder, name = "models", model
	}
	return version + folder + "/" + url.PathEscape(name)
}

// A Model calls Google. It may be used concurrently.
type Model struct {
	client *upstream.Client
}

var _ port.Model = (*Model)(nil)

func New(a upstream.Account) *Model {
	return &Model{client: a.Client(upstream.Server{Vendor: "Google", Variable: "GEMINI_API_KEY",
		Header: map[string]string{"X-Goog-Api-Key": a.Key}, AddressIn: "GOOGLE_GEMINI_BASE_URL"}, officialURL)}
}

func (m *Model) Close() { m.client.Close() }

// List lists the models that the key may use.
func (m *Model) List(ctx context.Context) ([]string, error) {
	type list struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	return upstream.List(ctx, m.client, version+"models?pageSize=1000", func(l list) (names []string) {
		for _, model := range l.Models {
			names = append(names, strings.TrimPrefix(model.Name, "models/"))
		}
		return names
	})
}

func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return m.client.Stream(ctx, req.Model, func(ctx context.Context, say func(port.ModelChunk) error) error {
		body, err := upstream.Encode(request(req))
		if err != nil {
			return err
		}
		answer, err := m.client.Post(ctx, path(req.Model)+":streamGenerateContent?alt=sse", body)
		if err != nil {
			return err
		}
		defer answer.Close()
		return m.listen(&hearing{say: say}, req.Model, upstream.NewEvents(answer))
	})
}

// listen reads an answer to its end.
func (m *Model) listen(h *hearing, model string, events *upstream.Events) error {
	for events.Next() {
		var c chunk
		if err := events.Decode(&c); err != nil {
			return err
		}
		if upstream.Present(c.Error) {
			return m.client.Refused(model, events.Data)
		}
		if err := h.hear(&c); err != nil {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return err
	}
	return h.end(model)
}
