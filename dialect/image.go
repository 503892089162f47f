package dialect

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"

	"parley"
)

// Limits for messages, and for the images and PDF documents of one input.
const (
	maxImages     = 4
	MaxImageBytes = 4 << 20 // of all images together
	// MaxMessage has room for the images in base64 and for escaped text.
	MaxMessage = 2*parley.MaxContent + MaxImageBytes/3*4 + 64<<10
	// MaxConversation has room for a long conversation, for clients that send it whole with every request.
	MaxConversation = 16 << 20
)

// ReadImages reads the field images of a message.
func ReadImages(o Object) ([]parley.Image, error) {
	var given []string
	if err := o.Into("images", &given, "a list of base64 strings or data URLs"); err != nil {
		return nil, Invalid("%s", err)
	}
	return Images(given)
}

// Images reads the images and PDF documents of an input: data URLs or bare base64. It detects the type from the data
// and ignores the type in the URL. The URL of a document may contain its name:
// data:application/pdf;name=a%20b.pdf;base64,…
func Images(given []string) (list []parley.Image, err error) {
	if len(given) > maxImages {
		return nil, Invalid("images: at most %d", maxImages)
	}
	all := 0
	for i, s := range given {
		name := ""
		if rest, isURL := strings.CutPrefix(s, "data:"); isURL {
			head, encoded, _ := strings.Cut(rest, ",")
			if !strings.HasSuffix(head, ";base64") {
				return nil, Invalid("images[%d] must be a data URL in base64", i)
			}
			s, name = encoded, nameIn(head)
		}
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(data) == 0 {
			return nil, Invalid("images[%d] is not base64", i)
		}
		if all += len(data); all > MaxImageBytes {
			return nil, parley.Errorf(parley.CodeTooLarge, "images: more than %d bytes in all.", MaxImageBytes)
		}
		kind := imageType(data)
		if kind == "" {
			return nil, Invalid("images[%d] is no PNG, JPEG, GIF, WebP or PDF", i)
		}
		image := parley.Image{Type: kind, Data: data}
		if kind == parley.TypePDF {
			image.Name = name
		}
		list = append(list, image)
	}
	return list, nil
}

// MessageText returns the text of a message. A message with images or documents alone gets a text: every input has one.
func MessageText(text string, images []string) string {
	if parley.IsBlank(text) && len(images) > 0 {
		return "(an image)"
	}
	return text
}

// IsPDF reports whether a media type is PDF.
func IsPDF(media string) bool {
	kind, _, _ := strings.Cut(media, ";")
	return strings.EqualFold(strings.TrimSpace(kind), parley.TypePDF)
}

// Document returns a PDF document and its name in the form that Images reads. data is a data URL or bare base64.
func Document(name, data string) string {
	if rest, isURL := strings.CutPrefix(data, "data:"); isURL {
		head, encoded, _ := strings.Cut(rest, ",")
		if !strings.HasSuffix(head, ";base64") || !IsPDF(head) {
			return data
		}
		data = encoded
	}
	if name == "" {
		return "data:" + parley.TypePDF + ";base64," + data
	}
	return "data:" + parley.TypePDF + ";name=" + url.PathEscape(name) + ";base64," + data
}

// nameIn returns the name parameter in the head of a data URL.
func nameIn(head string) string {
	for _, parameter := range strings.Split(head, ";") {
		if escaped, ok := strings.CutPrefix(parameter, "name="); ok {
			if name, err := url.PathUnescape(escaped); err == nil && len(name) <= parley.MaxName {
				return strings.ToValidUTF8(name, "")
			}
		}
	}
	return ""
}

func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("%PDF-")):
		return parley.TypePDF
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
