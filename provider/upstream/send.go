package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// An Object is a JSON object of a request. Requests are made of maps and not of structs: a provider encodes few of the
// fields that a vendor knows, and nothing reads them again.
type Object = map[string]any

// Encode encodes a part of a request. Unlike json.Marshal it leaves <, > and & as they are: they are frequent in code, and
// would take six bytes each.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Post sends a request and returns the answer, which the caller closes. The context must be that of Stream.
func (c *Client) Post(ctx context.Context, path string, body []byte) (io.ReadCloser, error) {
	return c.send(ctx, http.MethodPost, path, body)
}

// get decodes an answer into v.
func (c *Client) get(ctx context.Context, path string, v any) error {
	answer, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	return json.NewDecoder(answer).Decode(v)
}

func (c *Client) send(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "Parley")
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// A ModelList is an answer of OpenAI and Anthropic that lists models.
type ModelList struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
}

// IDs returns the names of the models.
func IDs(l ModelList) (names []string) {
	for _, model := range l.Data {
		names = append(names, model.ID)
	}
	return names
}
