package config

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Traces contains the settings in the standard variables of OpenTelemetry. They
// have no flags, because operators set these variables for all their programs.
type Traces struct {
	Endpoint string // URL for posting spans; empty: no traces
	Headers  map[string]string
	Timeout  time.Duration // of one request; zero: the default
	Gzip     bool
	// Files for TLS; empty: those of the system, and no certificate of this client.
	Certificate, ClientCertificate, ClientKey string
	Attributes                                map[string]string // attributes of the resource, including service.name
	Ratio                                     float64           // fraction of the traces that are exported
	Content                                   bool              // export the texts of messages and tool calls, too
}

const (
	otlpEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otlpContent  = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)

// ReadTraces reads the variables. Its errors do not contain values, because headers
// and addresses of collectors hold keys.
func ReadTraces(env Lookup) (t Traces, err error) {
	get := func(name string) string {
		value, _ := env(name)
		return strings.TrimSpace(value)
	}
	// The form of a variable for traces takes precedence over the form for all
	// signals.
	otlp := func(name string) (variable, value string) {
		for _, variable = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value = get(variable); value != "" {
				break
			}
		}
		return variable, value
	}
	endpoint, address := otlp("ENDPOINT")
	if address == "" || strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_TRACES_EXPORTER") == "none" {
		return Traces{}, nil
	}
	if exporter := get("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return Traces{}, fmt.Errorf("OTEL_TRACES_EXPORTER is otlp or none, not %q", exporter)
	}
	if name, protocol := otlp("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return Traces{}, fmt.Errorf("%s is %q, and traces are only sent by http/protobuf; set "+
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf, and an endpoint for it (usually port 4318)", name,
			protocol)
	}
	if t.Endpoint, err = tracesEndpoint(endpoint, address); err != nil {
		return Traces{}, err
	}
	if name, list := otlp("HEADERS"); list != "" {
		if t.Headers, err = pairs(name, list); err != nil {
			return Traces{}, err
		}
	}
	if name, value := otlp("TIMEOUT"); value != "" {
		ms, err := strconv.ParseInt(value, 10, 32)
		if err != nil || ms <= 0 {
			return Traces{}, fmt.Errorf("%s is a number of milliseconds above 0, not %q", name, value)
		}
		t.Timeout = time.Duration(ms) * time.Millisecond
	}
	_, t.Certificate = otlp("CERTIFICATE")
	_, t.ClientCertificate = otlp("CLIENT_CERTIFICATE")
	_, t.ClientKey = otlp("CLIENT_KEY")
	switch name, value := otlp("COMPRESSION"); value {
	case "gzip", "none", "":
		t.Gzip = value == "gzip"
	default:
		return Traces{}, fmt.Errorf("%s is gzip or none, not %q", name, value)
	}
	if t.Attributes, err = pairs("OTEL_RESOURCE_ATTRIBUTES", get("OTEL_RESOURCE_ATTRIBUTES")); err != nil {
		return Traces{}, err
	}
	if name := get("OTEL_SERVICE_NAME"); name != "" {
		t.Attributes["service.name"] = name
	}
	if t.Ratio, err = sampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return Traces{}, err
	}
	t.Content, err = captures(get(otlpContent))
	return t, err
}

// tracesEndpoint returns the URL for posting spans. If the variable is for all
// signals, its address is only the base.
func tracesEndpoint(name, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s is not an address like http://127.0.0.1:4318", name)
	}
	if name == otlpEndpoint {
		u = u.JoinPath("v1/traces")
	}
	return u.String(), nil
}

// pairs parses key=value,key=value. Values are percent-encoded.
func pairs(name, list string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, fmt.Errorf("%s is a list like key1=value1,key2=value2, with percent-encoded values", name)
		}
		all[key] = value
	}
	return all, nil
}

// sampler returns the fraction of the traces that are exported. A run has no parent
// outside Parley, so the prefix parentbased_ makes no difference.
func sampler(name, arg string) (float64, error) {
	switch strings.TrimPrefix(name, "parentbased_") {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		if arg == "" {
			return 1, nil
		}
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || math.IsNaN(ratio) || ratio < 0 || ratio > 1 {
			return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1, not %q", arg)
		}
		return ratio, nil
	}
	return 0, fmt.Errorf("OTEL_TRACES_SAMPLER is always_on, always_off or traceidratio, with or without "+
		"parentbased_ before it, not %q", name)
}

// captures reports whether spans contain texts.
func captures(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "span_only", "span_and_event":
		return true, nil
	case "", "false", "no_content", "event_only":
		return false, nil
	}
	return false, fmt.Errorf("%s is true or false, not %q", otlpContent, value)
}
