package task

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestUses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "t.yaml")
	text := `id: t
title: T
difficulty: easy
split: train
instruction: Do ${a} for ${who.name}.
params:
  who: {query: "SELECT id, name FROM c ORDER BY id"}
  a: {int: [1, 3]}
  b: {value: "SELECT ${a}::int * 2"}
  spare: {choice: [x, y]}
setup: ["INSERT INTO s VALUES (${who.id})"]
reward:
  stages:
    - name: one
      weight: 1
      query: SELECT n FROM c WHERE id = ${who.id}
      expect: {rows: [{n: "${b}"}]}
oracle: |
  finish(str(p.b))
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	suite, err := LoadSuite(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	u := suite.Tasks[0].Uses()
	for name, c := range map[string]struct{ got, want []string }{
		"instruction": {u.Instruction, []string{"a", "who"}}, "setup": {u.Setup, []string{"who"}},
		"reward": {u.Reward, []string{"b", "who"}}, "oracle": {u.Oracle, []string{"b"}}, "sources of b": {u.Sources["b"], []string{"a"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if !u.Reaches("a", u.Reward) || u.Reaches("spare", u.Reward) || !u.Reaches("who", u.Reward) {
		t.Error("a goes into the reward by way of b, spare does not")
	}
}
