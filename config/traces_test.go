package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadTraces(t *testing.T) {
	for _, c := range []struct {
		name string
		env  string // KEY=value, separated by spaces
		want Traces
		err  string
	}{
		{name: "off by default", env: "OTEL_SERVICE_NAME=x OTEL_EXPORTER_OTLP_HEADERS=a=b"},
		{name: "an address of all signals is a base", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318",
			want: Traces{Endpoint: "http://127.0.0.1:4318/v1/traces", Ratio: 1}},
		{name: "with a path", env: "OTEL_EXPORTER_OTLP_ENDPOINT=https://x.example/otlp/",
			want: Traces{Endpoint: "https://x.example/otlp/v1/traces", Ratio: 1}},
		{name: "an address of traces is used as it is",
			env:  "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b:1/in",
			want: Traces{Endpoint: "http://b:1/in", Ratio: 1}},
		{name: "everything", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_HEADERS=x=1,y=a%20b " +
			"OTEL_EXPORTER_OTLP_TIMEOUT=1500 OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_SERVICE_NAME=mine " +
			"OTEL_RESOURCE_ATTRIBUTES=service.name=other,team=blue OTEL_TRACES_SAMPLER=parentbased_traceidratio " +
			"OTEL_TRACES_SAMPLER_ARG=0.25 OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY " +
			"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
			want: Traces{Endpoint: "http://a/v1/traces", Headers: map[string]string{"x": "1", "y": "a b"},
				Timeout: 1500 * time.Millisecond, Gzip: true, Ratio: 0.25, Content: true,
				Attributes: map[string]string{"service.name": "mine", "team": "blue"}}},
		{name: "the SDK is disabled", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_SDK_DISABLED=TRUE"},
		{name: "no exporter", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_TRACES_EXPORTER=none"},
		{name: "nothing is sampled", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_TRACES_SAMPLER=always_off",
			want: Traces{Endpoint: "http://a/v1/traces"}},
		{name: "not an address", env: "OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:4318/secret",
			err: "OTEL_EXPORTER_OTLP_ENDPOINT is not an address like http://127.0.0.1:4318"},
		{name: "another protocol", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
			err: "only sent by http/protobuf"},
		{name: "headers without a value", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_HEADERS=secret",
			err: "OTEL_EXPORTER_OTLP_HEADERS is a list like"},
		{name: "an unknown sampler", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_TRACES_SAMPLER=dice",
			err: `not "dice"`},
		{name: "more than everything", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_TRACES_SAMPLER=traceidratio " +
			"OTEL_TRACES_SAMPLER_ARG=NaN", err: "a number from 0 to 1"},
		{name: "a timeout with a unit", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_TIMEOUT=10s",
			err: "a number of milliseconds"},
		{name: "an unknown compression",
			env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_EXPORTER_OTLP_COMPRESSION=zstd",
			err: "gzip or none"},
		{name: "an unknown exporter", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a OTEL_TRACES_EXPORTER=zipkin",
			err: "otlp or none"},
		{name: "content maybe", env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://a " +
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=maybe", err: "true or false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := map[string]string{}
			for _, pair := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				values[name] = value
			}
			got, err := ReadTraces(func(name string) (string, bool) { value, ok := values[name]; return value, ok })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if c.want.Endpoint != "" && c.want.Attributes == nil {
				c.want.Attributes = map[string]string{}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// TestTracesAreDocumented checks that docs/observe.md lists the variables that
// ReadTraces reads.
func TestTracesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "### Variables")
	documented := regexp.MustCompile("`(OTEL_\\w+)`").FindAllString(table, -1)
	var read []string
	_, err = ReadTraces(func(name string) (string, bool) {
		read = append(read, "`"+name+"`")
		if name == otlpEndpoint {
			return "http://x", true
		}
		return "", false
	})
	for _, name := range documented {
		if !slices.Contains(read, name) {
			t.Errorf("%s is documented, and is not read", name)
		}
	}
	for _, name := range read {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is read, and is not documented", name)
		}
	}
	if err != nil || len(read) < 15 {
		t.Errorf("%v, after %d variables", err, len(read))
	}
}
