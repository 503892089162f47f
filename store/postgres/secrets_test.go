package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"parley"
	"parley/store/rules"
	"parley/store/storetest"
)

func TestSecrets(t *testing.T) {
	url := migrated(t)
	storetest.Secrets(t, storetest.SecretDatabase{
		Open: func(v rules.Vault) (parley.Store, error) {
			s, err := Open(context.Background(), url, WithVault(v))
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Beneath: func(v rules.Vault) (rules.SecretStore, func()) {
			pool, err := pgxpool.New(context.Background(), url)
			if err != nil {
				t.Fatal(err)
			}
			return secrets{pool, v}, pool.Close
		},
	})
}
