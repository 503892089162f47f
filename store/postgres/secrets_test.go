package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"parley/port"
	"parley/store/rules"
	"parley/store/storetest"
)

// TestAServerWithTheEarlierKey lets a server with the earlier key write a secret after all others were encrypted with
// the new key. The next start with both keys must encrypt it with the new key, before the earlier key is removed.
func TestAServerWithTheEarlierKey(t *testing.T) {
	url, ctx := migrated(t), context.Background()
	open := func(keys ...int) *Store {
		var ring []string
		for _, n := range keys {
			ring = append(ring, storetest.MasterKey(n))
		}
		v, err := rules.NewVault(ring...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(ctx, url, WithVault(v))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	earlier := open(1, 2)
	open(2, 1)
	storetest.SetWebhook(t, earlier, "https://a.example/x")
	open(2, 1)
	h, ok, err := open(2).Tenant("acme").Webhook(ctx, storetest.ID(1))
	if err != nil || !ok || h.URL != "https://a.example/x" {
		t.Errorf("%+v, %v, %v", h, ok, err)
	}
}

func TestSecrets(t *testing.T) {
	url := migrated(t)
	storetest.Secrets(t, storetest.SecretDatabase{
		Open: func(v rules.Vault) (port.Store, error) {
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
