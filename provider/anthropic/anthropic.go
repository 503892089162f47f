// Package anthropic calls Claude models by the Messages API.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"regexp"
	"strconv"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley/port"
	"parley/provider/upstream"
)

// Name is the provider of the memos.
const Name = "anthropic"

const officialURL = "https://api.anthropic.com"

// Options are the options of a Model.
type Options struct {
	upstream.Account
	// Limit returns the maximum number of output tokens of a model, or 0 if
	// that is unknown; nil: unknown for all models.
	Limit func(model string) int
}

// A Model calls Anthropic. It may be used concurrently.
type Model struct {
	client   *upstream.Client
	messages anthropic.MessageService
	models   anthropic.ModelService
	limit    func(string) int
	tools    upstream.Tools
}

var _ port.Model = (*Model)(nil)

func New(o Options) *Model {
	if o.Limit == nil {
		o.Limit = func(string) int { return 0 }
	}
	client, baseURL := o.Client(upstream.Server{Vendor: "Anthropic", Variable: "ANTHROPIC_API_KEY",
		AddressIn: "ANTHROPIC_BASE_URL"}, officialURL)
	// The services are created without the client of the SDK, which would read
	// environment variables that Parley does not document.
	with := []option.RequestOption{
		option.WithHTTPClient(client.HTTP()), option.WithMaxRetries(0), option.WithAPIKey(o.Key),
		option.WithBaseURL(baseURL),
	}
	return &Model{client, anthropic.NewMessageService(with...), anthropic.NewModelService(with...), o.Limit,
		upstream.Tools{Encode: tool}}
}

func (m *Model) Close() { m.client.Close() }

// List lists the models that the key may use.
func (m *Model) List(ctx context.Context) ([]string, error) {
	return upstream.List(ctx, m.client, func(ctx context.Context) ([]anthropic.ModelInfo, error) {
		page, err := m.models.List(ctx, anthropic.ModelListParams{Limit: anthropic.Int(1000)})
		if err != nil {
			return nil, err
		}
		return page.Data, nil
	}, func(model anthropic.ModelInfo) string { return model.ID })
}

func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return m.client.Stream(ctx, req.Model, func(ctx context.Context, say func(port.ModelChunk) error) error {
		params := m.params(req)
		body, err := params.MarshalJSON()
		if err == nil {
			body, err = m.tools.Append(body, req.Tools)
		}
		if err != nil {
			return err
		}
		var response *http.Response
		stream := m.messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: params.Model},
			option.WithRequestBody("application/json", body), option.WithResponseInto(&response))
		defer stream.Close()
		if err := stream.Err(); err != nil {
			return err
		}
		return m.listen(&hearing{model: req.Model, say: say}, response.Body)
	})
}

// A way is how a version of Claude must be asked to think: with a budget from
// 3.7 on, and adaptively from 4.6 on. Each version refuses the other way, and
// earlier versions refuse both.
type way int

const (
	notAtAll way = iota
	withBudget
	asItSeesFit
)

var version = regexp.MustCompile(`claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?:-|$)`)

func thinks(model string) way {
	v := version.FindStringSubmatch(model)
	if v == nil {
		return notAtAll
	}
	major, _ := strconv.Atoi(v[1]) // matched digits only
	minor, _ := strconv.Atoi(v[2]) // empty: zero
	switch number := major*100 + minor; {
	case number >= 406:
		return asItSeesFit
	case number >= 307:
		return withBudget
	}
	return notAtAll
}
