// Package openai calls OpenAI's models by the Responses API, and the models of
// every server with a compatible Chat Completions API: Ollama, vLLM, llama.cpp,
// LiteLLM and most others.
package openai

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"regexp"
	"sync/atomic"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// Name is the provider of the memos.
const Name = "openai"

// The two APIs of a server.
const (
	Responses = "responses"
	Chat      = "chat"
)

const officialURL = "https://api.openai.com/v1"

// Options are the options of a Model.
type Options struct {
	upstream.Account
	API string // Responses or Chat; empty: depends on the address
}

// A Model calls one server. It may be used concurrently.
type Model struct {
	client *upstream.Client
	api    string

	chatTools, responsesTools upstream.Tools

	// unsummed is set if the server refuses to send reasoning summaries to this
	// account.
	unsummed atomic.Bool
}

var _ port.Model = (*Model)(nil)

// APIOf returns the API with which a server is called, Responses or Chat. Without a choice, servers other than OpenAI's
// own get Chat. An empty base URL is OpenAI's.
func APIOf(choice, baseURL string) string {
	u, err := url.Parse(cmp.Or(baseURL, officialURL))
	switch {
	case choice != "":
		return choice
	case err == nil && u.Hostname() == "api.openai.com":
		return Responses
	}
	return Chat
}

func New(o Options) *Model {
	o.API = APIOf(o.API, o.BaseURL)
	vendor := "OpenAI"
	if o.API == Chat {
		vendor = "the model's server"
	}
	header := map[string]string{"Accept": "application/json"}
	if o.Key != "" {
		header["Authorization"] = "Bearer " + o.Key
	}
	client := o.Client(upstream.Server{Vendor: vendor, Variable: "OPENAI_API_KEY", Header: header,
		AddressIn: "OPENAI_BASE_URL"}, officialURL)
	return &Model{client: client, api: o.API,
		chatTools: upstream.Tools{Encode: chatTool}, responsesTools: upstream.Tools{Encode: responsesTool}}
}

func (m *Model) Close() { m.client.Close() }

func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	if m.api == Chat {
		return m.client.Stream(ctx, req.Model, func(ctx context.Context, say func(port.ModelChunk) error) error {
			return m.speakChat(ctx, req, say)
		})
	}
	return func(yield func(port.ModelChunk, error) bool) {
		for {
			summed := !m.unsummed.Load()
			again := false
			for said, err := range m.client.Stream(ctx, req.Model,
				func(ctx context.Context, say func(port.ModelChunk) error) error {
					return m.speakResponses(ctx, req, summed, say)
				}) {
				// Accounts that are not verified may not see the model's
				// thinking: OpenAI refuses their requests for summaries.
				if summed && err != nil && summaries.MatchString(err.Error()) {
					m.unsummed.Store(true)
					again = true
					break
				}
				if !yield(said, err) {
					return
				}
			}
			if !again {
				return
			}
		}
	}
}

var summaries = regexp.MustCompile(`(?i)reasoning[ ._]summar`)

// List lists the models of the server.
func (m *Model) List(ctx context.Context) ([]string, error) {
	return upstream.List(ctx, m.client, "models", upstream.IDs)
}

// ended returns the stop reason of a turn that was not cut short.
func ended(refused bool, calls int) parley.Stop {
	switch {
	case calls > 0:
		return parley.StopTools
	case refused:
		return parley.StopRefusal
	}
	return parley.StopEnd
}
