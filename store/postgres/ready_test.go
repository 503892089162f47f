package postgres

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// awaitHeart waits for a few more heartbeats.
func awaitHeart(t *testing.T, s *Store, url string) {
	t.Helper()
	watch := connect(t, url)
	exec(t, watch, `CREATE TEMP TABLE before AS SELECT clock_timestamp() + '2 s' AS at`)
	await(t, watch, `SELECT seen_at > (SELECT at FROM before) FROM nodes WHERE id = '`+s.node+`'`)
}

// TestReadyFollowsAppends checks that the store is not ready as long as appends
// fail, even if the heartbeat works.
func TestReadyFollowsAppends(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end string }{
		"no room": {`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION full_disk()`, `DROP TRIGGER full_disk ON events`},
		"locked": {`BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE`, `ROLLBACK`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			url := pgtest.Database(t)
			s := open(t, url, WithTimeout(time.Second), WithLease(time.Second))
			mustAppend(t, s, batch(storetest.ID(1), 0))
			conn := connect(t, url)
			exec(t, conn, fault.begin)
			if _, err := s.Append(ctx, batch(storetest.ID(1), 1)); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Fatalf("append: %v", err)
			}
			if err := s.Ready(ctx); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Errorf("after an append that failed: %v", err)
			}
			awaitHeart(t, s, url)
			if err := s.Ready(ctx); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Errorf("after heartbeats: %v", err)
			}
			exec(t, conn, fault.end)
			healed(t, s)
			if n := len(log(t, s, storetest.ID(1))); n != 1 {
				t.Errorf("%d events, want 1: a rehearsal stored something", n)
			}
			mustAppend(t, s, batch(storetest.ID(1), 1))
			await(t, conn, `SELECT count(*) = 1 FROM tenants`)
		})
	}
}

func TestALogWithoutItsEnd(t *testing.T) {
	url := pgtest.Database(t)
	conn := connect(t, url)
	storetest.MissingEnd(t, open(t, url), func(id parley.SessionID, after parley.Seq) {
		exec(t, conn, `DELETE FROM events WHERE session = $1 AND seq > $2`, string(id), int64(after))
	})
}
