package remoting

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// Credentials sign requests where the servers have access control. The zero
// value signs nothing.
type Credentials struct{ AccessKey, SecretKey string }

// signed returns the request's fields and, with credentials, the access key and
// a signature over the fields' values in the order of their names, then the
// body. SHA-1 is RocketMQ's choice (AclUtils, AclSigner).
func (c Credentials) signed(fields map[string]string, body []byte) map[string]string {
	if c == (Credentials{}) {
		return fields
	}
	signed := map[string]string{"AccessKey": c.AccessKey}
	maps.Copy(signed, fields)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		text.WriteString(signed[name])
	}
	mac := hmac.New(sha1.New, []byte(c.SecretKey))
	mac.Write([]byte(text.String()))
	mac.Write(body)
	signed["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return signed
}
