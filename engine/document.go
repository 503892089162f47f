package engine

import (
	"cmp"
	"context"
	"slices"

	"parley"
)

// withDocuments adds to an input what is found in its PDF documents. That takes a
// while, so it is done before the session is bothered.
func (e *Engine) withDocuments(ctx context.Context, do parley.CommandBody) (parley.CommandBody, error) {
	in, ok := do.(parley.SubmitInput)
	if !ok || !slices.ContainsFunc(in.Images, isPDF) {
		return do, nil
	}
	if e.ReadPDF == nil {
		return do, parley.Errorf(parley.CodeInvalid, "This server cannot read PDF documents.")
	}
	in.Images = slices.Clone(in.Images)
	for i := range in.Images {
		d := &in.Images[i]
		if !isPDF(*d) {
			continue
		}
		d.Name = cmp.Or(parley.CleanText(d.Name), "document.pdf")
		var err error
		if d.Text, d.Pages, err = e.ReadPDF(ctx, d.Data); parley.CodeOf(err) == parley.CodeInvalid {
			return do, parley.Errorf(parley.CodeInvalid, "%q cannot be read: %s.", d.Name, parley.MessageOf(err))
		} else if err != nil {
			return do, err
		}
	}
	return in, nil
}

func isPDF(i parley.Image) bool { return i.Type == parley.TypePDF }

func textsOf(images []parley.Image) (texts []string) {
	for _, i := range images {
		texts = append(texts, i.Name, i.Text)
	}
	return texts
}

// readable refuses documents that the agent's model would see nothing of.
func (a *actor) readable(agent parley.Agent, images []parley.Image) error {
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
