package config

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// A Secret is not shown when it is printed. Secrets finds every value of this type,
// so that it can be redacted.
type Secret string

func (Secret) String() string   { return "(secret)" }
func (Secret) GoString() string { return "(secret)" }

// A SecretURL is an address that may hold a password or a key. It is not shown
// when it is printed. Its secret parts are redacted.
type SecretURL string

func (SecretURL) String() string   { return "(address)" }
func (SecretURL) GoString() string { return "(address)" }

// secrets returns the password of an address, and its parameters whose names sound
// like secrets.
func (s SecretURL) secrets() (list []string) {
	u, err := url.Parse(string(s))
	if err != nil {
		return []string{string(s)}
	}
	if password, ok := u.User.Password(); ok {
		list = append(list, password)
	}
	for name, values := range u.Query() {
		if secretName.MatchString(name) {
			list = append(list, values...)
		}
	}
	return list
}

// A Variable is an environment variable of a process. Its value is in Secret if the
// name sounds like that of a secret, else in Plain. Only the name is printed.
type Variable struct {
	Name   string
	Plain  string
	Secret Secret
}

func newVariable(name, value string) Variable {
	if secretName.MatchString(name) {
		return Variable{Name: name, Secret: Secret(value)}
	}
	return Variable{Name: name, Plain: value}
}

// Pair returns NAME=VALUE.
func (v Variable) Pair() string { return v.Name + "=" + v.Plain + string(v.Secret) }

func (v Variable) String() string   { return v.Name }
func (v Variable) GoString() string { return v.Name }

var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|auth|credential`)

// minSecret is the minimum length of a secret. Shorter texts could be ordinary
// words and are not redacted.
const minSecret = 8

// Secrets returns the texts to redact for a configuration: every Secret and
// SecretURL in it, at any depth. If the tag var of a field lists variables, the
// values of all of them count, including those that another one overrides.
func Secrets(configuration any, env Lookup) []string {
	w := secretWalk{env: env, seen: map[string]bool{}}
	w.walk(reflect.ValueOf(configuration), "")
	slices.Sort(w.found)
	return w.found
}

type secretWalk struct {
	env   Lookup
	seen  map[string]bool
	found []string
}

var (
	secretType    = reflect.TypeFor[Secret]()
	secretURLType = reflect.TypeFor[SecretURL]()
)

// walk collects secrets in a value. variables are those of its field.
func (w *secretWalk) walk(v reflect.Value, variables string) {
	if !v.IsValid() {
		return
	}
	switch v.Type() {
	case secretType, secretURLType:
		w.add(v.Type(), v.String())
		for name := range strings.SplitSeq(variables, ",") {
			if value, ok := w.env(name); ok && name != "" {
				w.add(v.Type(), value)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		w.walk(v.Elem(), variables)
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i), v.Type().Field(i).Tag.Get("var"))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.walk(v.Index(i), variables)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			w.walk(it.Key(), "")
			w.walk(it.Value(), "")
		}
	}
}

func (w *secretWalk) add(kind reflect.Type, value string) {
	values := []string{value}
	if kind == secretURLType {
		values = SecretURL(value).secrets()
	} else if _, token, ok := strings.Cut(value, " "); ok { // as in Bearer TOKEN
		values = append(values, token)
	}
	for _, value := range values {
		for _, form := range SecretForms(value) {
			if !w.seen[form] {
				w.seen[form] = true
				w.found = append(w.found, form)
			}
		}
	}
}

// EnteredSecret returns the texts to redact for a value of a header or variable that was entered in the console. The
// value may be anything, for example the name of a team. It counts as a secret
//   - if the name sounds like that of a secret, and the value has at least 8 bytes and a digit, or at least 16 bytes;
//   - with any name, if it contains 16 letters and digits in a row, with at least 2 of each.
//
// If the value has several words, as in Bearer TOKEN, the text without the first word is checked, too.
func EnteredSecret(name, value string) (list []string) {
	values := []string{value}
	if _, token, ok := strings.Cut(value, " "); ok {
		values = append(values, token)
	}
	named := secretName.MatchString(name) || cookieName.MatchString(name)
	for _, value := range values {
		if named && (len(value) >= 16 || strings.ContainsAny(value, "0123456789")) || looksRandom(value) {
			list = append(list, SecretForms(value)...)
		}
	}
	return list
}

var (
	cookieName = regexp.MustCompile(`(?i)cookie`)
	manyInARow = regexp.MustCompile(`[0-9A-Za-z]{16,}`)
)

// looksRandom reports whether a text contains 16 letters and digits in a row, with at least 2 of each.
func looksRandom(text string) bool {
	for _, run := range manyInARow.FindAllString(text, -1) {
		digits := 0
		for _, c := range run {
			if c <= '9' {
				digits++
			}
		}
		if digits >= 2 && len(run)-digits >= 2 {
			return true
		}
	}
	return false
}

// SecretForms returns a secret in plain form and as it appears in URLs. It returns
// nothing if the secret is shorter than minSecret.
func SecretForms(secret string) []string {
	if len(secret) < minSecret {
		return nil
	}
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	slices.Sort(forms)
	return slices.Compact(forms)
}
