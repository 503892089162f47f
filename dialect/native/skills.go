package native

import "net/http"

type skillInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Hint        string   `json:"argument_hint,omitempty"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"allowed_tools,omitempty"`
	People      bool     `json:"user_invocable"`
	Models      bool     `json:"model_invocable"`
}

// listSkills lists the skills that can be called as /name, and the problems of
// skill files.
func (h *Handler) listSkills(r request) (int, any, error) {
	if err := h.mayRead(r, ""); err != nil {
		return 0, nil, err
	}
	skills, problems := []skillInfo{}, []string{}
	if files := h.filesOf(r).Skills; files != nil {
		for _, s := range files.Skills(r.who.Tenant) {
			skills = append(skills, skillInfo{s.Name, s.Description, s.Hint, s.Model, s.Tools, s.People, s.Models})
		}
		problems = append(problems, files.Problems(r.who.Tenant)...)
	}
	return http.StatusOK, map[string]any{"skills": skills, "problems": problems}, nil
}
