package own_test

import (
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
		if k.Name == "shop.sold_out" && k.Own && k.Point == kind.Step && len(k.SQL.Run) == 1 && k.SQL.Lasts == 4 {
			return
		}
	}
	t.Errorf("kinds = %+v", kinds)
}
