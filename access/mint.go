package access

import (
	"context"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/port"
)

// Claims are the contents of a token.
type Claims struct {
	Issuer   string
	Audience string // empty: none
	port.Principal
	Issued  time.Time
	Expires time.Time
	ID      string // empty: none
}

// Mint signs an HS256 access token that a Verifier with the same secret, issuer and audience accepts. It fails if that
// Verifier would reject the token.
func Mint(secret string, c Claims) (string, error) {
	v, err := NewVerifier(TokenConfig{Secret: secret, Issuer: c.Issuer, Audience: c.Audience,
		Now: func() time.Time { return c.Issued }})
	if err != nil {
		return "", err
	}
	roles := c.Roles
	if roles == nil {
		roles = []parley.UserRole{}
	}
	claims := jwt.MapClaims{
		"iss": c.Issuer, "sub": string(c.Principal.ID), "tid": string(c.Tenant), "roles": roles, "type": "access",
		"iat": c.Issued.Unix(), "exp": c.Expires.Unix(),
	}
	if c.Audience != "" {
		claims["aud"] = c.Audience
	}
	if c.ID != "" {
		claims["jti"] = c.ID
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		return "", err
	}
	if _, err := v.Verify(context.Background(), token); err != nil {
		return "", fmt.Errorf("the server would reject this token: %w", err)
	}
	return token, nil
}
