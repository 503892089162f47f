package provider

import (
	"cmp"
	"math"
	"regexp"
	"strings"

	"parley"
)

// A Model has the known limits and prices of a model.
type Model struct {
	Window int // maximum number of input and output tokens together
	Output int // maximum number of output tokens; zero: unknown
	prices []price
}

// A price is in US dollars per million tokens, which is the same number in
// millionths of a dollar per token.
type price struct {
	over          int64 // the price applies to requests with more input than this
	input, output float64
	cached        float64 // input from the vendor's cache; zero: as input
	written       float64 // input written to the vendor's cache; zero: as input
}

// Unknown has the defaults for a model that is not in the table.
var Unknown = Model{Window: 128_000}

// known has the vendors' own list prices, standard tier, as of November 2026.
// They show users what a run costs; the vendor's bill is authoritative.
var known = map[string]Model{
	// https://platform.openai.com/docs/pricing
	"gpt-3.5-turbo":      {16_385, 4_096, one(0.5, 0, 1.5)},
	"gpt-3.5-turbo-16k":  {16_385, 4_096, one(3, 0, 4)},
	"gpt-4":              {8_192, 8_192, one(30, 0, 60)},
	"gpt-4-32k":          {32_768, 8_192, one(60, 0, 120)},
	"gpt-4-turbo":        {128_000, 4_096, one(10, 0, 30)},
	"gpt-4o":             {128_000, 16_384, one(2.5, 1.25, 10)},
	"gpt-4o-2024-05-13":  {128_000, 4_096, one(5, 0, 15)},
	"gpt-4o-mini":        {128_000, 16_384, one(0.15, 0.075, 0.6)},
	"gpt-4.1":            {1_047_576, 32_768, one(2, 0.5, 8)},
	"gpt-4.1-mini":       {1_047_576, 32_768, one(0.4, 0.1, 1.6)},
	"gpt-4.1-nano":       {1_047_576, 32_768, one(0.1, 0.025, 0.4)},
	"o1":                 {200_000, 100_000, one(15, 7.5, 60)},
	"o3":                 {200_000, 100_000, one(2, 0.5, 8)},
	"o3-mini":            {200_000, 100_000, one(1.1, 0.55, 4.4)},
	"o4-mini":            {200_000, 100_000, one(1.1, 0.275, 4.4)},
	"codex-mini":         {200_000, 100_000, one(1.5, 0.375, 6)},
	"gpt-5":              {400_000, 128_000, one(1.25, 0.125, 10)},
	"gpt-5-codex":        {400_000, 128_000, one(1.25, 0.125, 10)},
	"gpt-5-chat":         {128_000, 16_384, one(1.25, 0.125, 10)},
	"gpt-5-mini":         {400_000, 128_000, one(0.25, 0.025, 2)},
	"gpt-5-nano":         {400_000, 128_000, one(0.05, 0.005, 0.4)},
	"gpt-5-pro":          {400_000, 272_000, one(15, 0, 120)},
	"gpt-5.1":            {400_000, 128_000, one(1.25, 0.125, 10)},
	"gpt-5.1-codex":      {400_000, 128_000, one(1.25, 0.125, 10)},
	"gpt-5.1-codex-mini": {400_000, 128_000, one(0.25, 0.025, 2)},
	"gpt-5.2":            {400_000, 128_000, one(1.75, 0.175, 14)},
	"gpt-5.2-codex":      {400_000, 128_000, one(1.75, 0.175, 14)},
	"gpt-5.3-codex":      {400_000, 128_000, one(1.75, 0.175, 14)},
	"gpt-5.4":            {400_000, 128_000, one(2.5, 0.25, 15)},
	"gpt-5.4-mini":       {400_000, 128_000, one(0.75, 0.075, 4.5)},

	// https://platform.claude.com/docs/en/about-claude/pricing
	"claude-3-haiku":    {200_000, 4_096, []price{{input: 0.25, cached: 0.03, written: 0.3, output: 1.25}}},
	"claude-3-opus":     {200_000, 4_096, claude(15, 75)},
	"claude-3-5-haiku":  {200_000, 8_192, claude(0.8, 4)},
	"claude-3-5-sonnet": {200_000, 8_192, claude(3, 15)},
	"claude-3-7-sonnet": {200_000, 64_000, claude(3, 15)},
	"claude-haiku-4-5":  {200_000, 64_000, claude(1, 5)},
	"claude-sonnet-4":   {200_000, 64_000, claude(3, 15)},
	"claude-sonnet-4-0": {200_000, 64_000, claude(3, 15)},
	"claude-sonnet-4-5": {200_000, 64_000, claude(3, 15)},
	"claude-sonnet-4-6": {1_000_000, 64_000, claude(3, 15)},
	"claude-opus-4":     {200_000, 32_000, claude(15, 75)},
	"claude-opus-4-0":   {200_000, 32_000, claude(15, 75)},
	"claude-opus-4-1":   {200_000, 32_000, claude(15, 75)},
	"claude-opus-4-5":   {200_000, 64_000, claude(5, 25)},
	"claude-opus-4-6":   {1_000_000, 128_000, claude(5, 25)},
	"claude-opus-4-7":   {1_000_000, 128_000, claude(5, 25)},
	"claude-opus-4-8":   {1_000_000, 128_000, claude(5, 25)},
	"claude-sonnet-5":   {1_000_000, 128_000, claude(2, 10)},
	"claude-sonnet-5-5": {1_000_000, 128_000, []price{{input: 2, cached: 0.1, written: 2.5, output: 10}}},
	"claude-opus-5":     {1_000_000, 128_000, claude(5, 25)},
	"claude-opus-5-5":   {1_000_000, 128_000, []price{{input: 4, cached: 0.2, written: 5, output: 20}}},
	"claude-haiku-5-5": {1_000_000, 128_000, []price{
		{input: 0.1, cached: 0.01, written: 0.125, output: 0.5},
		{over: 100_000, input: 0.5, cached: 0.05, written: 0.625, output: 2.5}}},

	// https://ai.google.dev/gemini-api/docs/pricing
	"gemini-1.5-flash-8b":   {1_048_576, 8_192, two(128_000, one(0.0375, 0.01, 0.15), one(0.075, 0.02, 0.3))},
	"gemini-1.5-flash":      {1_048_576, 8_192, two(128_000, one(0.075, 0.01875, 0.3), one(0.15, 0.0375, 0.6))},
	"gemini-1.5-pro":        {2_097_152, 8_192, two(128_000, one(1.25, 0.3125, 5), one(2.5, 0.625, 10))},
	"gemini-2.0-flash-lite": {1_048_576, 8_192, one(0.075, 0, 0.3)},
	"gemini-2.0-flash":      {1_048_576, 8_192, one(0.1, 0.025, 0.4)},
	"gemini-2.5-flash-lite": {1_048_576, 65_536, one(0.1, 0.01, 0.4)},
	"gemini-2.5-flash":      {1_048_576, 65_536, one(0.3, 0.03, 2.5)},
	"gemini-2.5-pro":        {1_048_576, 65_536, two(200_000, one(1.25, 0.125, 10), one(2.5, 0.25, 15))},
	"gemini-3-flash":        {1_048_576, 65_536, one(0.5, 0.05, 3)},
	"gemini-3-pro":          {1_048_576, 65_536, two(200_000, one(2, 0.2, 12), one(4, 0.4, 18))},
	"gemini-3.1-pro":        {1_048_576, 65_536, two(200_000, one(2, 0.2, 12), one(4, 0.4, 18))},
}

func one(input, cached, output float64) []price {
	return []price{{input: input, cached: cached, output: output}}
}

func two(over int64, upto, above []price) []price {
	above[0].over = over
	return []price{upto[0], above[0]}
}

// claude returns the prices of a Claude model: cached input costs a tenth, and
// writing it to the cache for five minutes a quarter more.
func claude(input, output float64) []price {
	return []price{{input: input, cached: input / 10, written: input * 1.25, output: output}}
}

// snapshot matches the suffix by which vendors name a snapshot of a model.
var snapshot = regexp.MustCompile(
	`-(latest|\d{8}|\d{4}-\d\d-\d\d|\d{3,4}|preview|preview-\d\d-\d\d|preview-\d\d-\d{4}|exp)$`)

// About returns the entry of a model. It matches only the model's own name or
// one of its snapshots: a model with the same prefix may cost ten times as
// much.
func About(name string) Model {
	name = bare(name)
	for {
		if m, ok := known[name]; ok {
			return m
		}
		shorter := snapshot.ReplaceAllString(name, "")
		if shorter == name {
			return Unknown
		}
		name = shorter
	}
}

// bare returns a model name without the vendor's prefix.
func bare(name string) string {
	for _, prefix := range []string{"anthropic/", "google/", "openai/", "models/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// Most returns the maximum usage of one call of a model with so many bytes of input: every token has at least one byte.
func Most(name string, bytes int64) parley.Usage {
	m := About(name)
	u := parley.Usage{Input: min(bytes, int64(m.Window)), Output: int64(cmp.Or(m.Output, m.Window))}
	u.CostMicros = max(m.Cost(u), m.Cost(parley.Usage{Input: u.Input, Written: u.Input, Output: u.Output}))
	return u
}

// Cost returns the cost of a call of a model, in millionths of a US dollar.
func Cost(name string, u parley.Usage) int64 { return About(name).Cost(u) }

// Cost returns the cost of usage, in millionths of a US dollar, or zero if the
// price is unknown.
func (m Model) Cost(u parley.Usage) int64 {
	var p price
	for _, tier := range m.prices {
		if u.Input > tier.over || tier.over == 0 {
			p = tier
		}
	}
	if p.cached == 0 {
		p.cached = p.input
	}
	if p.written == 0 {
		p.written = p.input
	}
	fresh := max(u.Input-u.Cached-u.Written, 0)
	return int64(
		math.Round(float64(fresh)*p.input + float64(u.Cached)*p.cached + float64(u.Written)*p.written + float64(
			u.Output)*p.output))
}
