package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type deepSecrets struct {
	Embedded Secret `var:"FIRST_VARIABLE,SECOND_VARIABLE"`
}

// TestSecretsAreFoundAnywhere checks that secrets are found by their type, wherever they are in a configuration.
func TestSecretsAreFoundAnywhere(t *testing.T) {
	type settings struct {
		deepSecrets
		Name    string
		Pointer *deepSecrets
		Nothing *deepSecrets
		List    []Secret
		Map     map[string]Secret
		Keys    map[Secret]bool
		Inner   []struct{ Password Secret }
		Any     any
		private Secret
		Empty   Secret
		Short   Secret
		Address SecretURL
		Public  SecretURL
		Set     []Variable
	}
	c := settings{
		deepSecrets: deepSecrets{"in an embedded struct"},
		Name:        "not a secret",
		Pointer:     &deepSecrets{"behind a pointer"},
		List:        []Secret{"of a list"},
		Map:         map[string]Secret{"Authorization": "Bearer of-a-header"},
		Keys:        map[Secret]bool{"the key of a map": true},
		Inner:       []struct{ Password Secret }{{"of an inner struct"}},
		Any:         []any{Secret("in an interface")},
		private:     "of a private field",
		Short:       "short",
		Address:     "postgres://user:pass%2Fword1@host/name?sslkey=a-key-in-a-parameter&mode=not-secret",
		Public:      "https://example.com/v1",
		Set:         []Variable{newVariable("API_KEY", "of a variable"), newVariable("HOME", "/home/somebody")},
	}
	env := map[string]string{"FIRST_VARIABLE": "in an embedded struct", "SECOND_VARIABLE": "overridden",
		"OTHER_VARIABLE": "not a secret"}
	got := Secrets(&c, func(name string) (string, bool) { value, ok := env[name]; return value, ok })
	want := map[string]bool{}
	for _, s := range []string{"in an embedded struct", "behind a pointer", "of a list", "Bearer of-a-header",
		"of-a-header", "the key of a map", "of an inner struct", "in an interface", "of a private field", "pass/word1",
		"a-key-in-a-parameter", "of a variable", "overridden"} {
		want[s] = true
		for _, form := range SecretForms(s) {
			want[form] = true
		}
	}
	// The text after the first space counts too, because of headers such as Bearer TOKEN.
	for _, s := range []string{"an embedded struct", "a pointer", "a list", "key of a map", "an inner struct",
		"an interface", "a private field", "a variable"} {
		for _, form := range SecretForms(s) {
			want[form] = true
		}
	}
	found := map[string]bool{}
	for _, s := range got {
		found[s] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

// TestSecretsHaveTheType checks that a setting whose name sounds like a secret
// has the type Secret, so that it is redacted and not printed.
func TestSecretsHaveTheType(t *testing.T) {
	sounds := regexp.MustCompile(`Key$|Secret$|Token$|Password$`)
	noSecrets := map[string]bool{
		"QueryToken": true, // on or off
	}
	var look func(typ reflect.Type)
	look = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if sounds.MatchString(f.Name) && f.Type != secretType && !noSecrets[f.Name] {
				t.Errorf("%s.%s is a %s; make it a Secret", typ.Name(), f.Name, f.Type)
			}
			if inner := f.Type; inner.Kind() == reflect.Struct {
				look(inner)
			} else if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
				look(inner.Elem())
			}
		}
	}
	look(reflect.TypeFor[Settings]())
}

// TestEnteredSecrets checks which values that were entered in the console count as secrets. Ordinary words never do.
func TestEnteredSecrets(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"X-A", "function_name", nil},
		{"X-B", "password reset", nil},
		{"X-Api-Key", "function_name", nil},
		{"Authorization", "Bearer development", []string{"Bearer development"}},
		{"key", "lm-studio", nil},
		{"Accept", "application/vnd.github+json", nil},
		{"X-Model", "claude-sonnet-4-5-20250929", nil},
		{"X-Version", "2024-11-05", nil},
		{"BASE", "https://example.com/v1/service2", nil},
		{"X-Api-Key", "short1", nil},
		{"X-Api-Key", "hunter22", []string{"hunter22"}},
		{"DB_PASSWORD", "correct-horse-battery", []string{"correct-horse-battery"}},
		{"Authorization", "Bearer tok-1234", []string{"Bearer tok-1234", "tok-1234"}},
		{"X-Figma", "figd_4eC39HqLyjWDarjtT1zdp7dc", []string{"figd_4eC39HqLyjWDarjtT1zdp7dc"}},
		{"Cookie", "sid=abc12345", []string{"sid=abc12345"}},
	} {
		got := slices.DeleteFunc(EnteredSecret(c.name, c.value), func(s string) bool {
			return strings.Contains(s, "+") ||
				strings.Contains(s, "%")
		}) // without the forms in URLs
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
