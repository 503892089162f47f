package main

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"parley/config"
	"parley/provider"
	"parley/trace"
)

// newTraces exports runs to the collector in the standard variables of
// OpenTelemetry. It returns nil if they name none.
func newTraces(env config.Lookup, s store, models *provider.Models, at net.Addr, made *parts, log *slog.Logger) (
	*trace.Exporter, error) {
	t, err := config.ReadTraces(env)
	if err != nil || t.Endpoint == "" {
		return nil, err
	}
	collector, err := trace.NewCollector(trace.CollectorOptions{Endpoint: t.Endpoint, Headers: t.Headers,
		Timeout: t.Timeout, Gzip: t.Gzip, Certificate: t.Certificate, ClientCertificate: t.ClientCertificate,
		ClientKey: t.ClientKey})
	if err != nil {
		return nil, fmt.Errorf("the files for TLS to the collector of traces: %w", err)
	}
	x := trace.New(trace.Options{Store: s, Upload: collector.Upload, Closed: collector.Close,
		Resource: resource(t.Attributes, at), Version: version, Sampled: trace.Ratio(t.Ratio),
		Provider: func(model string) string { return vendor(models.Provider(model)) }, Content: t.Content, Log: log})
	made.add("traces", x)
	log.Info("runs are exported as traces", "content", t.Content, "ratio", t.Ratio)
	return x, nil
}

// resource describes the server that the spans come from.
func resource(given map[string]string, at net.Addr) *resourcepb.Resource {
	all := map[string]string{"service.name": "parley", "service.version": version, "service.instance.id": at.String()}
	maps.Copy(all, given)
	r := &resourcepb.Resource{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: name,
			Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: all[name]}}})
	}
	return r
}

// vendor returns the name of a provider in the OpenTelemetry conventions.
func vendor(name string) string {
	if name == provider.Google {
		return "gcp.gemini"
	}
	return name
}
