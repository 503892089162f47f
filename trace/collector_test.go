package trace

import (
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

var someSpans = []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "a"}}}}}}

// TestUpload checks requests, and what the answers of a collector mean.
func TestUpload(t *testing.T) {
	encoded := func(p *coltracepb.ExportTracePartialSuccess) string {
		raw, err := proto.Marshal(&coltracepb.ExportTraceServiceResponse{PartialSuccess: p})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       string // of the error
	}{
		"accepted":         {200, contentType, encoded(nil), ""},
		"accepted by JSON": {200, "application/json", "{}", ""},
		"some rejected": {200, contentType, encoded(&coltracepb.ExportTracePartialSuccess{RejectedSpans: 3,
			ErrorMessage: "too old"}), "rejected 3 spans: too old"},
		"nonsense": {200, contentType, "\xff", "EOF"},
		"refused":  {503, "text/plain", " be back soon \n", "503 Service Unavailable: be back soon"},
	} {
		for _, zip := range []bool{false, true} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body io.Reader = r.Body
				if r.Header.Get("Content-Encoding") == "gzip" {
					body, _ = gzip.NewReader(r.Body) // a nil reader fails below
				}
				raw, err := io.ReadAll(body)
				var request coltracepb.ExportTraceServiceRequest
				if err != nil || proto.Unmarshal(raw, &request) != nil || len(request.ResourceSpans) != 1 ||
					request.ResourceSpans[0].ScopeSpans[0].Spans[0].Name != "a" || r.Header.Get("Api-Key") != "k" ||
					r.URL.Path != "/in" || (r.Header.Get("Content-Encoding") == "gzip") != zip {
					t.Errorf("%s: %s %v %v", name, r.URL, r.Header, err)
				}
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			collector, err := NewCollector(CollectorOptions{Endpoint: server.URL + "/in", Gzip: zip,
				Headers: map[string]string{"api-key": "k"}})
			if err != nil {
				t.Fatal(err)
			}
			if err = collector.Upload(t.Context(), someSpans); (err == nil) != (c.want == "") ||
				err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			collector.Close()
			server.Close()
		}
	}
}

// TestUnreachableCollector checks that a collector that does not answer in time can be told from one that refuses.
func TestUnreachableCollector(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after this
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := NewCollector(CollectorOptions{Endpoint: server.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Upload(t.Context(), someSpans); err == nil {
		t.Error("an attempt without an answer has succeeded")
	} else if _, ok := errors.AsType[*url.Error](err); !ok {
		t.Errorf("%#v", err)
	}
}

// TestCertificatesOfACollector checks that a collector is trusted by the certificate in a file.
func TestCertificatesOfACollector(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := NewCollector(CollectorOptions{Endpoint: server.URL, Certificate: file})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Upload(t.Context(), someSpans); err != nil {
		t.Error(err)
	}
	for _, o := range []CollectorOptions{{Certificate: file + "?"}, {Certificate: "collector_test.go"},
		{ClientCertificate: file}, {ClientCertificate: file, ClientKey: file}} {
		if _, err := NewCollector(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
