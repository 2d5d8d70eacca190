package browser

import (
	"encoding/json"
	"testing"
)

// The fast way of reading an answer gives what the general way gives, or passes.
func TestDecodeFastAgrees(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "plain", "line\nline\ttab", `quote " and \ back`, "h\u00e4 \u6f22", "\U0001F600 pair", "nul \x00 end", "\u2028",
	} {
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, `{"result":{"type":"string","value":`+string(value)+`}}`)
	}
	for _, raw := range []string{
		`{"result":{"type":"string","value":"\ud83d\ude00"}}`,
		`{"result":{"type":"string","value":"half \ud83d end"}}`,
		`{"result":{"type":"string","value":"\ude00\ud83d"}}`,
		`{"result":{"type":"string","value":"\ud83d\u0041"}}`,
		`{"result":{"type":"string","value":"a\/b\b\f"}}`,
		`{"result":{"type":"string","value":"thrown"},"exceptionDetails":{"text":"Uncaught"}}`,
		`{"result":{"type":"object","subtype":"null","value":null}}`,
		`{"result":{"type":"undefined"}}`,
		`{"result":{"type":"string","value":"bad \u12"}}`,
		`{"result":{"type":"string","value":"bad \x"}}`,
	} {
		agree(t, raw)
	}
}

func agree(t *testing.T, raw string) {
	t.Helper()
	var v struct {
		Result    struct{ Value *string }
		Exception any `json:"exceptionDetails"`
	}
	general := json.Unmarshal([]byte(raw), &v) == nil && v.Exception == nil && v.Result.Value != nil
	var got string
	if !decodeFast(json.RawMessage(raw), &got) {
		return
	}
	if !general || got != *v.Result.Value {
		t.Errorf("%s: got %q, which the general way does not", raw, got)
	}
}

func FuzzDecodeFast(f *testing.F) {
	f.Add("text", true)
	f.Fuzz(func(t *testing.T, s string, quoted bool) {
		if quoted {
			b, err := json.Marshal(s)
			if err != nil {
				t.Skip("it does not encode")
			}
			s = string(b)
		}
		agree(t, `{"result":{"type":"string","value":`+s+`}}`)
	})
}
