package main

import (
	"fmt"

	"parley/port"
)

type modelsCommand struct {
	listFlags
}

func (*modelsCommand) Help() string {
	return `The model of agents that name none is marked with a star. Prices are in US dollars for a million tokens.

Example:

  $ parley models
  $ parley run --model gpt-4.1 "Say hello."`
}

// Run lists the models of the configured vendors.
func (c *modelsCommand) Run(p *program) error {
	price := func(dollars float64) string {
		if dollars == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", dollars)
	}
	return listing[port.ModelInfo]{
		fetch: func(to *connection) ([]port.ModelInfo, error) { return to.Models(p.ctx) },
		title: []string{"MODEL", "VENDOR", "CONTEXT", "INPUT", "OUTPUT"},
		row: func(m port.ModelInfo) []string {
			name, window := m.ID, ""
			if m.Default {
				name += " *"
			}
			if m.Window > 0 {
				window = fmt.Sprint(m.Window)
			}
			return []string{name, m.Provider, window, price(m.InputPrice), price(m.OutputPrice)}
		},
		none: "There are no models.",
	}.show(p, c.listFlags)
}
