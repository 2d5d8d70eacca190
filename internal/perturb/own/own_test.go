package own_test

import (
	"strings"
	"testing"

	"github.com/pommelgym/pommel/internal/perturb/kind"
	"github.com/pommelgym/pommel/internal/perturb/own"
)

func TestKindsOfTheShop(t *testing.T) {
	t.Parallel()
	kinds, err := own.Load("../../../worlds/shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if k.Name == "shop.price_change" && k.Own && k.Point == kind.Step && len(k.SQL.Run) == 1 {
			return
		}
	}
	t.Errorf("kinds = %+v", kinds)
}

func TestBadKindsAreNamedByPlace(t *testing.T) {
	t.Parallel()
	_, err := own.Parse("perturb/bad.yaml", []byte("kind: shop.x\ntitle: X\nrecovery: none\nsqll: [SELECT 1]\n"))
	if err == nil || !strings.Contains(err.Error(), "perturb/bad.yaml:4") {
		t.Errorf("err = %v", err)
	}
}
