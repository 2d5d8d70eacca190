package server

import (
	"fmt"
	"testing"

	pommelv1 "github.com/pommelgym/pommel/gen/pommel/v1"
)

// TestPerturbationsAreTold: the trainer asks for a profile and hears what struck.
func TestPerturbationsAreTold(t *testing.T) {
	t.Parallel()
	srv := serve(t, newScripted(t, script{}), Options{}, "127.0.0.1:0")
	r := mustReset(t, gymClient(t, srv.url), &pommelv1.ResetRequest{Task: "buy", Profile: "rough"})
	i := r.GetInfo()
	if !i.GetPerturbed() || i.GetProfile() != "rough" || len(i.GetPerturbations()) != 1 {
		t.Fatalf("info = %v", i)
	}
	p := i.GetPerturbations()[0]
	got := fmt.Sprintf("%d %d %s %s %d %s %s %v %v %d", p.GetVirtualMs(), p.GetStep(), p.GetRule(), p.GetKind(), p.GetAt(), p.GetTarget(), p.GetSeen(), p.GetNumbers(), p.GetTexts(), p.GetCost())
	if want := "1500 1 slow http.latency 2 GET / late map[delay:3000] map[style:icon] 1"; got != want {
		t.Errorf("perturbation = %s, want %s", got, want)
	}
}
