package engine

import (
	"context"
	"slices"

	"parley"
)

// checkToolNames refuses client tools that have the name of one of the agent's tools.
func (a *actor) checkToolNames(agent parley.Agent, tools []parley.ClientTool) error {
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

// withClientTools returns the tools of an agent in a run, including the client tools that came with an input. If a tool
// server that came up since then has a tool of the same name, the client tool is left out. If the client carries out
// all calls, the returned agent has no tools: whatever the model calls, the server runs nothing.
func (a *actor) withClientTools(ctx context.Context, agent parley.Agent, input parley.InputID) ([]parley.ToolSpec,
	parley.Agent, error) {
	specs := a.tools(ctx).Specs(agent)
	if input == 0 {
		return specs, agent, nil
	}
	_, in, err := readEvent[parley.InputReceived](ctx, a, parley.Seq(input))
	if err != nil {
		return nil, agent, err
	}
	all := slices.Clone(specs)
	if in.ClientCalls {
		agent.Tools = []string{}
		for i := range all {
			all[i].Client = true
		}
	}
	for _, t := range in.Tools {
		if !slices.ContainsFunc(specs, func(s parley.ToolSpec) bool { return s.Name == t.Name }) {
			all = append(all, t.Spec())
		}
	}
	return all, agent, nil
}
