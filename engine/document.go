package engine

import (
	"cmp"
	"context"
	"slices"

	"parley"
	"parley/port"
)

// withDocuments adds the text of an input's PDF documents. Reading them is
// slow, so it happens before the command goes to the session's actor.
func (e *Engine) withDocuments(ctx context.Context, who port.Principal, c parley.Command) (parley.CommandBody, error) {
	do := c.Do
	in, ok := do.(parley.SubmitInput)
	if !ok || !slices.ContainsFunc(in.Images, isPDF) {
		return do, nil
	}
	if e.ReadPDF == nil {
		return do, parley.Errorf(parley.CodeInvalid, "This server cannot read PDF documents.")
	}
	if err := e.mayStart(ctx, who, c); err != nil {
		return do, err
	}
	in.Images = slices.Clone(in.Images)
	for i := range in.Images {
		d := &in.Images[i]
		if !isPDF(*d) {
			continue
		}
		d.Name = cmp.Or(parley.CleanText(d.Name), "document.pdf")
		var err error
		if d.Text, d.Pages, err = e.ReadPDF(ctx, who, d.Data); parley.CodeOf(err) == parley.CodeInvalid {
			return do, parley.Errorf(parley.CodeInvalid, "%q cannot be read: %s.", d.Name, parley.MessageOf(err))
		} else if err != nil {
			return do, err
		}
	}
	return in, nil
}

// mayStart refuses a command that the session's actor would refuse because of its sender, or because there is no
// session. Reading a document costs seconds, so it is not done for such a command.
func (e *Engine) mayStart(ctx context.Context, who port.Principal, c parley.Command) error {
	rules := c.Do.Rules()
	on := port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant, Session: c.Session}
	st, err := e.Store.Tenant(who.Tenant).Session(ctx, c.Session)
	missing := parley.CodeOf(err) == parley.CodeNotFound
	switch {
	case err != nil && !missing:
		return err
	case err == nil && st.Summary.Owner != "":
		on.Kind, on.Owner = port.OneSession, st.Summary.Owner
	}
	if refusal := e.permit(ctx, who, c.Via, rules.Action, on); refusal != nil {
		return refusal
	}
	if missing && !rules.Opens {
		return err
	}
	return nil
}

func isPDF(i parley.Image) bool { return i.Type == parley.TypePDF }

func textsOf(images []parley.Image) (texts []string) {
	for _, i := range images {
		texts = append(texts, i.Name, i.Text)
	}
	return texts
}

// checkReadable refuses documents without text if the agent's model cannot see their pages.
func (a *actor) checkReadable(agent parley.Agent, images []parley.Image) error {
	model := cmp.Or(agent.Model, a.engine.defaultModel())
	if !agent.Elsewhere() && a.engine.SeesPDF != nil && a.engine.SeesPDF(model) {
		return nil
	}
	for _, i := range images {
		if isPDF(i) && i.Text == "" {
			return parley.Errorf(parley.CodeInvalid, "%q has no text: its pages may be scanned. %s does not read "+
				"pages. Choose a model of Anthropic, Google or OpenAI, or attach the pages as images.", i.Name, model)
		}
	}
	return nil
}
