package engine

import (
	"context"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// readers returns a rig that reads PDFs. The bytes of a document are its text, so a blank one has none.
func readers(t *testing.T, sees bool) *rig {
	return newRig(t, func(c *Config) {
		c.ReadPDF = func(_ context.Context, _ port.Principal, document []byte) (string, int, error) {
			text, ok := strings.CutPrefix(string(document), "%PDF-")
			if !ok {
				return "", 0, parley.Errorf(parley.CodeInvalid, "it is damaged")
			}
			return text, 2, nil
		}
		c.SeesPDF = func(string) bool { return sees }
	})
}

func withDocument(data string) parley.SubmitInput {
	return parley.SubmitInput{Content: "say done", Images: []parley.Image{{Type: parley.TypePDF, Data: []byte(data)}}}
}

// TestDocuments checks that the log has the text of a document, and that a client cannot supply this text.
func TestDocuments(t *testing.T) {
	r := readers(t, false)
	id := r.open()
	in := withDocument("%PDF-The words.")
	in.Images[0].Text, in.Images[0].Pages = "Other words.", 7
	r.do(id, in)
	got := all[parley.InputReceived](r.finished(id, 1))[0].Images[0]
	if got.Text != "The words." || got.Pages != 2 || got.Name != "document.pdf" {
		t.Errorf("%+v", got)
	}
	r.check(id)
}

// TestDocumentsAreRefused checks that a refusal says what is wrong with a document, and leaves nothing in the log.
func TestDocumentsAreRefused(t *testing.T) {
	r := readers(t, false)
	id := r.open()
	if why := r.refused(id, withDocument("x"), parley.CodeInvalid); why != `"document.pdf" cannot be read: it is damaged.` {
		t.Error(why)
	}
	if why := r.refused(id, withDocument("%PDF-"), parley.CodeInvalid); !strings.Contains(why, "has no text") {
		t.Error(why)
	}
	seeing := readers(t, true)
	id = seeing.open()
	seeing.do(id, withDocument("%PDF-"))
	seeing.finished(id, 1)
	none := newRig(t, func(*Config) {})
	id = none.open()
	none.refused(id, withDocument("%PDF-x"), parley.CodeInvalid)
}

// TestDocumentsAreScreened checks that documents are screened like the message that they come with.
func TestDocumentsAreScreened(t *testing.T) {
	scanned := make(chan string, 9)
	r := newRig(t, func(c *Config) {
		c.ReadPDF = func(context.Context, port.Principal, []byte) (string, int, error) { return "The words.", 1, nil }
		c.Screen = listening{c.Screen, scanned}
	})
	id := r.open()
	r.do(id, withDocument("%PDF-"))
	if text := <-scanned; !strings.Contains(text, "The words.") {
		t.Errorf("%q was scanned", text)
	}
}

// TestDocumentsNeedWritePermission checks that a document is not read if its session does not exist, or if the
// principal may not write there.
func TestDocumentsNeedWritePermission(t *testing.T) {
	read := 0
	r := newRig(t, func(c *Config) {
		c.ReadPDF = func(context.Context, port.Principal, []byte) (string, int, error) { read++; return "x", 1, nil }
	})
	id := r.open()
	reader := port.Principal{ID: "rob", Tenant: acme, Roles: []parley.UserRole{parley.RoleReadOnly}}
	stranger := port.Principal{ID: "eve", Tenant: acme, Roles: []parley.UserRole{parley.RoleStandardUser}}
	const none = "99999999-9999-4999-8999-999999999999"
	for _, c := range []struct {
		who     port.Principal
		session parley.SessionID
		open    bool
		code    parley.Code
	}{{reader, id, false, parley.CodeForbidden}, {reader, none, false, parley.CodeForbidden},
		{reader, none, true, parley.CodeForbidden}, {stranger, id, false, parley.CodeNotFound},
		{ann, none, false, parley.CodeNotFound}} {
		in := withDocument("%PDF-")
		in.Open = c.open
		_, err := r.Submit(t.Context(), c.who, parley.Command{Session: c.session, Do: in})
		if parley.CodeOf(err) != c.code || read > 0 {
			t.Errorf("%s in %s: %v, %d documents were read", c.who.ID, c.session, err, read)
		}
	}
	in := withDocument("%PDF-")
	in.Open = true
	r.do(none, in)
	if r.finished(none, 1); read != 1 {
		t.Errorf("%d documents were read", read)
	}
}

// listening is a screen that passes on the texts it scans.
type listening struct {
	port.Screen
	scanned chan string
}

func (l listening) Scan(_ []string, text string) parley.Finding {
	select {
	case l.scanned <- text:
	default:
	}
	return parley.Finding{}
}
