package parley

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// NamedSession returns the id of the session that a principal knows by a name. The id depends only on the arguments, so
// nothing has to be stored for it. Other principals can compute the id, too. So the id bears a mark, and only the
// principal of the name can open a session with such an id.
func NamedSession(tenant TenantID, who PrincipalID, name string) SessionID {
	var all []byte
	for _, part := range []string{string(tenant), string(who), "name", name} {
		all = fmt.Appendf(all, "%d:%s", len(part), part)
	}
	sum := sha256.Sum256(all)
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as all sessions are
	copy(id[12:], markOf(id))
	x := hex.EncodeToString(id)
	return SessionID(strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-"))
}

// markOf returns the mark with which the id of a named session ends.
func markOf(id []byte) []byte {
	sum := sha256.Sum256(append([]byte("parley: named session\n"), id[:12]...))
	return sum[:4]
}

// named reports whether an id bears the mark. Of random ids, one in four thousand million does.
func (id SessionID) named() bool {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
	return err == nil && len(raw) == 16 && bytes.Equal(raw[12:], markOf(raw))
}
