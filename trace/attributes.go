package trace

import (
	"cmp"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"parley"
)

type attribute = commonpb.KeyValue

const (
	firstChunk    = "gen_ai.response.time_to_first_chunk"
	responseModel = "gen_ai.response.model"
)

// text returns an attribute, or none if the value is empty.
func text(name, value string) []*attribute {
	if value == "" {
		return nil
	}
	return []*attribute{{Key: name, Value: stringValue(value)}}
}

func stringValue(value string) *commonpb.AnyValue {
	// Protocol buffers reject text that is not UTF-8.
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}
}

func texts(name string, values ...string) []*attribute {
	list := &commonpb.ArrayValue{}
	for _, v := range values {
		list.Values = append(list.Values, stringValue(v))
	}
	return []*attribute{{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}}}
}

func number(name string, value int64) []*attribute {
	return []*attribute{{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}}
}

func flag(name string, value bool) []*attribute {
	return []*attribute{{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value}}}}
}

func float(name string, value float64) []*attribute {
	return []*attribute{
		{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value}}}}
}

func seconds(name string, d time.Duration) []*attribute { return float(name, d.Seconds()) }

func usage(u parley.Usage) (list []*attribute) {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"gen_ai.usage.input_tokens", u.Input}, {"gen_ai.usage.output_tokens", u.Output},
		{"gen_ai.usage.cache_read.input_tokens", u.Cached}, {"gen_ai.usage.cache_creation.input_tokens", u.Written},
	} {
		if n.value > 0 {
			list = append(list, number(n.name, n.value)...)
		}
	}
	if u.CostMicros > 0 {
		list = append(list, float("parley.cost_usd", u.CostUSD())...)
	}
	return list
}

// finishReason returns the conventions' word for a stop.
func finishReason(s parley.Stop) string {
	switch s {
	case parley.StopEnd:
		return "stop"
	case parley.StopTools:
		return "tool_call"
	case parley.StopRefusal:
		return "content_filter"
	case parley.StopCut, parley.StopFailed:
		return "error"
	}
	return string(s)
}

// join returns a new list, because attempts at a call share attributes.
func join(lists ...[]*attribute) (all []*attribute) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func attributeOf(list []*attribute, name string) string {
	for _, a := range list {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func has(list []*attribute, name string) bool {
	for _, a := range list {
		if a.Key == name {
			return true
		}
	}
	return false
}

func or(values ...string) string { return cmp.Or(values...) }

// trimmed returns the name of a span without a trailing space if its last part is
// empty.
func trimmed(name string) string { return strings.TrimSpace(name) }
