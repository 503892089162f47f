// Package anthropic has Claude speak, by the Messages API.
package anthropic

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley/port"
	"parley/provider/upstream"
)

// Name is what memos are signed with.
const Name = "anthropic"

const officialURL = "https://api.anthropic.com"

// Options of a provider.
type Options struct {
	Key         string
	BaseURL     string        // empty: Anthropic's own
	Idle        time.Duration // longest silence of the server
	ShowAddress bool          // users may know its address
	KeyIn       string        // the place that holds the key and the address, if it is not the environment
	// Limit is how many tokens a model can say at most; nil: nobody knows.
	Limit func(model string) int
}

// A Model speaks for Anthropic. It may be used concurrently.
type Model struct {
	client   *upstream.Client
	messages anthropic.MessageService
	models   anthropic.ModelService
	limit    func(string) int
	tools    upstream.Tools
}

var _ port.Model = (*Model)(nil)

func New(o Options) *Model {
	addressIn := "ANTHROPIC_BASE_URL"
	if o.BaseURL == "" {
		o.BaseURL, addressIn = officialURL, ""
	} else if o.KeyIn != "" {
		addressIn = o.KeyIn
	}
	if o.Limit == nil {
		o.Limit = func(string) int { return 0 }
	}
	client := upstream.New(upstream.Server{Vendor: "Anthropic", Variable: cmp.Or(o.KeyIn, "ANTHROPIC_API_KEY"), Key: o.Key,
		Idle: o.Idle, ShowAddress: o.ShowAddress, AddressIn: addressIn})
	// The services are made directly: a client of the SDK would read variables of
	// the process that nobody mentioned.
	with := []option.RequestOption{
		option.WithHTTPClient(client.HTTP()), option.WithMaxRetries(0), option.WithAPIKey(o.Key),
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
	}
	return &Model{client, anthropic.NewMessageService(with...), anthropic.NewModelService(with...), o.Limit,
		upstream.Tools{Encode: tool}}
}

func (m *Model) Close() { m.client.Close() }

// List names the models that the key may use.
func (m *Model) List(ctx context.Context) ([]string, error) {
	return upstream.List(ctx, m.client, func(ctx context.Context) ([]anthropic.ModelInfo, error) {
		page, err := m.models.List(ctx, anthropic.ModelListParams{Limit: anthropic.Int(1000)})
		if err != nil {
			return nil, err
		}
		return page.Data, nil
	}, func(model anthropic.ModelInfo) string { return model.ID })
}

func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.Said, error] {
	return m.client.Stream(ctx, req.Model, func(ctx context.Context, say func(port.Said) error) error {
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

// Versions of Claude that think, and how they are asked to: with a budget from
// 3.7 on, and as they see fit from 4.6 on. Each refuses to be asked the other
// way, and earlier ones either.
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
	major, _ := strconv.Atoi(v[1]) // digits only
	minor, _ := strconv.Atoi(v[2]) // or nothing
	switch number := major*100 + minor; {
	case number >= 406:
		return asItSeesFit
	case number >= 307:
		return withBudget
	}
	return notAtAll
}
