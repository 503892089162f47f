package trace

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	defaultTimeout = 10 * time.Second // of a request, from the conventions of OpenTelemetry
	maxAnswer      = 64 << 10         // bytes read of an answer

	contentType = "application/x-protobuf"
)

// CollectorOptions are the options of a Collector.
type CollectorOptions struct {
	Endpoint string // URL for posting spans
	Headers  map[string]string
	Timeout  time.Duration // of one request; zero: the default
	Gzip     bool

	// Files for TLS; empty: the certificates of the system, and none of the client.
	Certificate, ClientCertificate, ClientKey string
}

// A Collector is a server that receives spans by OTLP over HTTP.
type Collector struct {
	CollectorOptions
	client    http.Client
	transport *http.Transport
}

// NewCollector reads the files for TLS.
func NewCollector(o CollectorOptions) (*Collector, error) {
	c := &Collector{CollectorOptions: o, transport: http.DefaultTransport.(*http.Transport).Clone()}
	// It follows no redirects, which would send the headers, and the keys in them, to another server.
	c.client = http.Client{Transport: c.transport, Timeout: cmp.Or(o.Timeout, defaultTimeout),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	config := &tls.Config{}
	if o.Certificate != "" {
		raw, err := os.ReadFile(o.Certificate)
		if err != nil {
			return nil, err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("%s has no certificate in PEM format", o.Certificate)
		}
	}
	if o.ClientCertificate != "" || o.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(o.ClientCertificate, o.ClientKey)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	c.transport.TLSClientConfig = config
	return c, nil
}

// Close closes the connections that are not in use.
func (c *Collector) Close() { c.transport.CloseIdleConnections() }

// Upload makes one attempt to send spans. The error is a *url.Error if the collector has not answered.
func (c *Collector) Upload(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire, TracesData is the same as the request of the service, whose package needs all of gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.Gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "Parley")
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", contentType)
	if c.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case response.StatusCode < 200 || response.StatusCode > 299:
		return fmt.Errorf("the collector answered %s: %s", response.Status, strings.TrimSpace(string(answer)))
	case response.Header.Get("Content-Type") == contentType:
		return partial(answer)
	}
	return nil
}

// partial returns an error if the collector has rejected spans, or has a warning. The answer is an
// ExportTraceServiceResponse: field 1 is a message with the number of rejected spans in field 1 and words in field 2.
func partial(answer []byte) error {
	success, _, err := field(answer, 1)
	if err != nil {
		return err
	}
	_, rejected, err := field(success, 1)
	if err != nil {
		return err
	}
	words, _, err := field(success, 2)
	if err != nil || rejected == 0 && len(words) == 0 {
		return err
	}
	return &Partial{rejected, string(words)}
}

// Partial is the error of a request that the collector has accepted, except for some spans, or with a warning. Such a
// request must not be sent again.
type Partial struct {
	Rejected uint64
	Words    string
}

func (p *Partial) Error() string {
	return fmt.Sprintf("the collector rejected %d spans: %s", p.Rejected, p.Words)
}

// field returns the last value of a field with bytes or with a whole number.
func field(message []byte, number protowire.Number) (value []byte, count uint64, err error) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return nil, 0, protowire.ParseError(size)
		}
		_, _, tag := protowire.ConsumeTag(message)
		switch raw := message[tag:size]; {
		case n == number && kind == protowire.BytesType:
			value, _ = protowire.ConsumeBytes(raw)
		case n == number && kind == protowire.VarintType:
			count, _ = protowire.ConsumeVarint(raw)
		}
		message = message[size:]
	}
	return value, count, nil
}
