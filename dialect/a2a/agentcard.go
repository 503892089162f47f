package a2a

import (
	"cmp"
	"net/http"
	"net/url"

	"parley"
	"parley/dialect"
)

// card is an agent card: it describes an agent, its address and its protocol versions.
type card struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`

	SupportedInterfaces []agentInterface `json:"supportedInterfaces,omitempty"` // version 1.0 only

	ProtocolVersion    string `json:"protocolVersion,omitempty"` // version 0.3 only, like the next two fields
	URL                string `json:"url,omitempty"`
	PreferredTransport string `json:"preferredTransport,omitempty"`

	Capabilities         capabilities                   `json:"capabilities"`
	DefaultInputModes    []string                       `json:"defaultInputModes"`
	DefaultOutputModes   []string                       `json:"defaultOutputModes"`
	Skills               []skill                        `json:"skills"`
	SecuritySchemes      map[string]any                 `json:"securitySchemes,omitempty"`
	SecurityRequirements []map[string]map[string]scopes `json:"securityRequirements,omitempty"` // version 1.0 only
	Security             []map[string][]string          `json:"security,omitempty"`             // version 0.3 only
}

type agentInterface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

type capabilities struct {
	Streaming         bool `json:"streaming"`
	PushNotifications bool `json:"pushNotifications"`
}

type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

type scopes struct {
	List []string `json:"list"`
}

// card serves the card of an agent, or of the default agent.
func (h *Handler) card(w http.ResponseWriter, r *http.Request) {
	who, err := h.Guard.Who(r)
	if err != nil {
		dialect.Refuse(w, err)
		return
	}
	s, err := versionOf(version(r))
	if err != nil {
		dialect.WriteJSON(w, http.StatusBadRequest, response{JSONRPC: "2.0", Error: errorOf(err)})
		return
	}
	_, project, err := dialect.InProject(h.Door, who.Tenant, r)
	var agent parley.Agent
	if err == nil {
		agent, err = h.admit(r.Context(), who, parley.ActRead, project, r.PathValue("id"))
	}
	if e, ok := err.(noAgentError); ok {
		err = e.error
	}
	if err != nil {
		dialect.LogFailure(h.Log, err)
		dialect.Refuse(w, err)
		return
	}
	w.Header().Set("Vary", "A2A-Version")
	dialect.WriteJSON(w, http.StatusOK, s.card(agent, h.address(r, agent.Name), h.Version, h.Bearer))
}

// address returns the URL for calls to an agent. It ends with a slash, because clients resolve the address of the agent
// card relative to it.
func (h *Handler) address(r *http.Request, agent string) string {
	base := h.Public
	if base == "" {
		base = "http://" + r.Host
	}
	address := base + "/a2a/" + url.PathEscape(agent) + "/"
	if name := dialect.ProjectName(r); name != "" {
		address += "?project=" + url.QueryEscape(name)
	}
	return address
}

func (s shape) card(a parley.Agent, address, version string, bearer bool) card {
	about := cmp.Or(a.Description, "The agent "+a.Name+" of a Parley server.")
	c := card{Name: a.Name, Description: about, Version: cmp.Or(version, "dev"),
		Capabilities: capabilities{Streaming: true},
		DefaultInputModes: []string{"text/plain", "image/png", "image/jpeg", "image/gif", "image/webp",
			"application/pdf"},
		DefaultOutputModes: []string{"text/plain"},
		Skills:             []skill{{ID: a.Name, Name: a.Name, Description: about, Tags: []string{"chat"}}}}
	if s == v03 {
		c.ProtocolVersion, c.URL, c.PreferredTransport = "0.3.0", address, "JSONRPC"
	} else {
		c.SupportedInterfaces = []agentInterface{{address, "JSONRPC", "1.0"}, {address, "JSONRPC", "0.3"}}
	}
	switch {
	case !bearer:
	case s == v03:
		c.SecuritySchemes = map[string]any{"bearer": map[string]string{"type": "http", "scheme": "bearer",
			"bearerFormat": "JWT"}}
		c.Security = []map[string][]string{{"bearer": {}}}
	default:
		c.SecuritySchemes = map[string]any{"bearer": map[string]any{"httpAuthSecurityScheme": map[string]string{
			"scheme": "Bearer", "bearerFormat": "JWT"}}}
		c.SecurityRequirements = []map[string]map[string]scopes{{"schemes": {"bearer": {List: []string{}}}}}
	}
	return c
}
