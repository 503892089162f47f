package native

import (
	"cmp"
	"mime"
	"net/http"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// exportSession serves a conversation as a file: a document (?format=markdown or html), or the log itself (jsonl).
func (h *Handler) exportSession(w http.ResponseWriter, r *http.Request) {
	id := parley.SessionID(r.PathValue("id"))
	switch format := cmp.Or(r.URL.Query().Get("format"), "markdown"); format {
	case "jsonl":
		name(w, id, "jsonl")
		h.log(w, whole(r), port.Scope{Session: id})
	case "markdown", "html":
		body, err := h.export(r, id, format)
		if err != nil {
			h.fail(w, err)
			return
		}
		ending, kind := "md", "text/markdown; charset=utf-8"
		if format == "html" {
			ending, kind = "html", "text/html; charset=utf-8"
			w.Header().Set("Content-Security-Policy", dialect.ExportPolicy)
		}
		name(w, id, ending)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body) // an error means that the client has gone
	default:
		h.fail(w, dialect.Invalid("format must be markdown, html or jsonl"))
	}
}

// whole returns a request for the whole log up to its head: a file must end.
func whole(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	q.Del("after")
	q.Del("follow")
	r.URL.RawQuery = q.Encode()
	r.Header.Del("Accept")
	return r
}

func name(w http.ResponseWriter, id parley.SessionID, ending string) {
	short, _, _ := strings.Cut(string(id), "-")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": "conversation-" + short + "." + ending}))
}

func (h *Handler) export(r *http.Request, id parley.SessionID, format string) ([]byte, error) {
	who, err := h.Guard.Who(r)
	if err != nil {
		return nil, err
	}
	m, err := h.Door.Session(r.Context(), who, id)
	if err != nil {
		return nil, err
	}
	var x dialect.Export
	var unread error
	if err := dialect.ReadLog(r.Context(), h.Door, who, id, 1, m.Head, func(e parley.Event) {
		if unread == nil {
			unread = x.Read(e)
		}
	}); err != nil {
		return nil, err
	}
	if unread != nil {
		return nil, unread
	}
	return x.Document(r.Context(), format)
}
