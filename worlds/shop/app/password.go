package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	passwordScheme     = "pbkdf2-sha256"
	passwordIterations = 20_000
	passwordMinimum    = 10
)

// hashPassword makes the stored form scheme$iterations$salt$key.
func hashPassword(password string) (string, error) {
	salt := make([]byte, 16)
	rand.Read(salt)
	key, err := pbkdf2.Key(sha256.New, password, salt, passwordIterations, 32)
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return fmt.Sprintf("%s$%d$%s$%s", passwordScheme, passwordIterations, hex.EncodeToString(salt), hex.EncodeToString(key)), nil
}

// passwordMatches compares in constant time; a stored form it cannot read matches nothing.
func passwordMatches(stored, password string) bool {
	parts := strings.Split(stored, "$")
	if len(parts) != 4 || parts[0] != passwordScheme {
		return false
	}
	iterations, err := strconv.Atoi(parts[1])
	if err != nil || iterations < 1 || iterations > 1_000_000 {
		return false
	}
	salt, saltErr := hex.DecodeString(parts[2])
	want, wantErr := hex.DecodeString(parts[3])
	if saltErr != nil || wantErr != nil {
		return false
	}
	key, err := pbkdf2.Key(sha256.New, password, salt, iterations, len(want))
	return err == nil && hmac.Equal(key, want)
}
