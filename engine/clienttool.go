package engine

import (
	"context"
	"slices"

	"parley"
)

// freeNames refuses tools of a client that are called like tools that the agent has.
func (a *actor) freeNames(agent parley.Agent, tools []parley.ClientTool) error {
	if len(tools) == 0 {
		return nil
	}
	specs := a.tools(a.engine.ctx).Specs(agent)
	for _, t := range tools {
		if slices.ContainsFunc(specs, func(s parley.ToolSpec) bool { return s.Name == t.Name }) {
			return parley.Errorf(parley.CodeInvalid, "The agent %s has a tool called %q already; give yours "+
				"another name.",
				agent.Name, t.Name)
		}
	}
	return nil
}

// withClientTools adds the tools that came with an input to those of the agent. A tool
// server may have come up since the input was accepted, so a name can be taken now.
func (a *actor) withClientTools(ctx context.Context, specs []parley.ToolSpec, input parley.InputID) ([]parley.ToolSpec,
	error) {
	if input == 0 {
		return specs, nil
	}
	_, in, err := readEvent[parley.InputReceived](ctx, a, parley.Seq(input))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(specs)
	for _, t := range in.Tools {
		if !slices.ContainsFunc(specs, func(s parley.ToolSpec) bool { return s.Name == t.Name }) {
			all = append(all, t.Spec())
		}
	}
	return all, nil
}
