package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// maxRequest bounds a client's request.
const maxRequest = 1 << 20

// checked answers what is no JSON-RPC request in JSON-RPC, as its specification wants;
// probes of this endpoint send such things and look for that answer.
func checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			http.Error(w, "the request is too large or broke off", http.StatusRequestEntityTooLarge)
			return
		}
		switch {
		case !json.Valid(body):
			writeError(w, -32700, "Parse error")
		case !isMessage(body):
			writeError(w, -32600, "Invalid Request: want a JSON-RPC 2.0 message with jsonrpc and method")
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

// isMessage says that body could be a message, or a list of them; the SDK looks closer.
func isMessage(body []byte) bool {
	if body = bytes.TrimSpace(body); bytes.HasPrefix(body, []byte("[")) {
		return true
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	return json.Unmarshal(body, &m) == nil && m.Version == "2.0" && (m.Method != "" || m.Result != nil || m.Error != nil)
}

func writeError(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message},
	}) // a caller that has gone needs no answer
}
