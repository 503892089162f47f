package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"parley/config"
	"parley/screen"
)

// TestKeysAreSecrets checks that keys are secrets wherever they are set, also
// in .env, which is not part of the environment.
func TestKeysAreSecrets(t *testing.T) {
	c := &config.Settings{}
	c.OpenAIKey, c.AnthropicKey, c.GoogleKey = "sk-openai-1", "sk-anthropic-1", "sk-google-1"
	env := func(name string) (string, bool) { return "sk-other-google", name == "GOOGLE_API_KEY" }
	own := ownSecrets(c, env, make([]byte, 32))
	for _, want := range []string{"sk-openai-1", "sk-anthropic-1", "sk-google-1", "sk-other-google"} {
		if !slices.Contains(own, want) {
			t.Errorf("%s is not among them", want)
		}
	}
}

// TestEverySecretIsRedacted sets a secret in every field of the configuration whose
// type can hold one. The screen must redact all of them.
func TestEverySecretIsRedacted(t *testing.T) {
	c := &config.Settings{}
	planted := map[string]string{} // by field
	plantSecrets(reflect.ValueOf(c).Elem(), "", planted)
	if len(planted) < 12 || planted[".Signing.JWTSecret"] == "" && planted[".Access.Signing.JWTSecret"] == "" {
		t.Fatalf("planted only %v", planted)
	}
	redactor := screen.New(nil, "off", ownSecrets(c, noEnv, make([]byte, 32))...)
	for field, secret := range planted {
		if !redactor.HasSecret("acme", "before "+secret+" after") {
			t.Errorf("%s is shown", field)
		}
	}
}

// plantSecrets fills a value with secrets, and notes them by field.
func plantSecrets(v reflect.Value, path string, planted map[string]string) {
	secret := fmt.Sprintf("planted-secret-%03d", len(planted))
	switch {
	case v.Type() == reflect.TypeFor[config.Secret]():
		v.SetString(secret)
		planted[path] = secret
	case v.Type() == reflect.TypeFor[config.SecretURL]():
		v.SetString("postgres://user:" + secret + "@host/name")
		planted[path] = secret
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plantSecrets(v.Field(i), path+"."+v.Type().Field(i).Name, planted)
			}
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plantSecrets(v.Index(0), path+"[0]", planted)
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		plantSecrets(value, path+"[]", planted)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plantSecrets(v.Elem(), path, planted)
	}
}
