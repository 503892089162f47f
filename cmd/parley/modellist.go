package main

import "fmt"

type modelsCommand struct {
	serverFlags
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
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	list, err := to.Models(p.ctx)
	if err != nil {
		return err
	}
	price := func(dollars float64) string {
		if dollars == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", dollars)
	}
	rows := table{{"MODEL", "VENDOR", "CONTEXT", "INPUT", "OUTPUT"}}
	for _, m := range list {
		name, window := m.ID, ""
		if m.Default {
			name += " *"
		}
		if m.Window > 0 {
			window = fmt.Sprint(m.Window)
		}
		rows = append(rows, []string{name, m.Provider, window, price(m.InputPrice), price(m.OutputPrice)})
	}
	return c.print(p, orEmpty(list), rows, "There are no models.")
}
