// Package google calls Gemini models by the Gemini API.
package google

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/genai"

	"parley/port"
	"parley/provider/upstream"
)

// Name is the provider of the memos.
const Name = "google"

const officialURL = "https://generativelanguage.googleapis.com/"

// A Model calls Google. It may be used concurrently.
type Model struct {
	client *upstream.Client
	models *genai.Models
	err    error // why there is no client
}

var _ port.Model = (*Model)(nil)

func New(a upstream.Account) *Model {
	if a.Key == "" {
		a.Key = "none" // otherwise the SDK would look for a key in the environment
	}
	client, baseURL := a.Client(upstream.Server{Vendor: "Google", Variable: "GEMINI_API_KEY",
		AddressIn: "GOOGLE_GEMINI_BASE_URL"}, officialURL)
	once := int32(1)
	sdk, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: a.Key, Backend: genai.BackendGeminiAPI, HTTPClient: client.HTTP(),
		HTTPOptions: genai.HTTPOptions{BaseURL: baseURL, RetryOptions: &genai.HTTPRetryOptions{Attempts: &once}},
	})
	if err != nil {
		return &Model{client: client, err: fmt.Errorf("google's SDK: %w", err)}
	}
	return &Model{client: client, models: sdk.Models}
}

func (m *Model) Close() { m.client.Close() }

// List lists the models that the key may use.
func (m *Model) List(ctx context.Context) ([]string, error) {
	if m.err != nil {
		return nil, m.err
	}
	return upstream.List(ctx, m.client, func(ctx context.Context) ([]*genai.Model, error) {
		page, err := m.models.List(ctx, &genai.ListModelsConfig{PageSize: 1000})
		if err != nil {
			return nil, err
		}
		return page.Items, nil
	}, func(model *genai.Model) string { return strings.TrimPrefix(model.Name, "models/") })
}

func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return m.client.Stream(ctx, req.Model, func(ctx context.Context, say func(port.ModelChunk) error) error {
		if m.err != nil {
			return m.err
		}
		h := hearing{say: say}
		for response, err := range m.models.GenerateContentStream(ctx, req.Model, contents(req), config(req)) {
			if err == nil {
				err = h.hear(response)
			}
			if err != nil {
				return m.broken(req.Model, err)
			}
		}
		return h.end(req.Model)
	})
}
