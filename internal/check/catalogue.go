package check

// Property is one thing that Run checks of a task.
type Property struct {
	Name string `json:"name"`
	// What says what is proven, Remedy what to do when it does not hold.
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	// Also are the names that other catalogues of checks have for it.
	Also []string `json:"also,omitempty"`
}

// Properties are all of them, in the order in which they are checked.
func Properties() []Property {
	return []Property{
		{Name: "valid", What: "the task's file fits the world's database: tables, columns, SQL, parameters",
			Remedy: "mend the file at the place that is named"},
		{Name: "oracle", What: "the scripted solution reaches success and a reward of exactly 1 for every seed",
			Remedy: "play the seed with `pommel run --task T --seed N` and look at it with `pommel trace show`; mend the oracle, or the stage that asks for more than the instruction does",
			Also:   []string{"oracle_max"}},
		{Name: "do_nothing", What: "who finishes at once, or waits until the limit, earns nothing, and no stage that pays holds at the start",
			Remedy: "add a stage that only the work brings about, such as a changed row", Also: []string{"floor_gap"}},
		{Name: "random", What: "random clicks and words do not succeed, and earn at most half",
			Remedy: "ask for something more specific, set `only` so that side effects count as damage, or move weight to later stages", Also: []string{"floor_gap"}},
		{Name: "shortcuts", What: "guesses, whole pages or the instruction as the answer, and giving up do not succeed",
			Remedy: "use a typed answer (number, money, date, id) and `match: exact`, or a parameter with more values", Also: []string{"canary_floor"}},
		{Name: "limits", What: "an episode ends at its limit of steps, as truncated, and the limit leaves room beyond the oracle's steps",
			Remedy: "raise limits.steps: an agent needs room for a few mistakes", Also: []string{"timeout_ceiling"}},
		{Name: "same_seed", What: "the same seed and actions give the same episode: again in a world that was used, in several worlds at once, and in worlds of another driver",
			Remedy: "find the value that is named in the application: real time, unseeded chance, the order of a query without ORDER BY, or state outside of the world",
			Also:   []string{"seed_control", "episode_determinism", "episode_isolation", "replayability"}},
		{Name: "seeds", What: "different seeds ask for different things, if the task has parameters",
			Remedy: "let a parameter have more values, and name it in the instruction", Also: []string{"seed_control"}},
		{Name: "pure", What: "asked twice about one state, the judge answers the same",
			Remedy: "take what changes by itself (random(), clock_timestamp()) out of the stage's query", Also: []string{"verifier_determinism"}},
		{Name: "order", What: "the oracle reaches the stages in the order of the file, and no stage counts before those it names in `after`",
			Remedy: "put the stages in the order in which the work reaches them"},
		{Name: "instruction", What: "what the instruction names is judged and turns up in what the oracle did; what is judged can be known from the instruction",
			Remedy: "name every choice that the judge expects in the instruction, and judge every one that it names"},
		{Name: "secrets", What: "no right answer lies in a page's source, storage or address where no user would read it",
			Remedy: "take it out of the page: comments, data attributes, scripts and hidden fields are open to an agent", Also: []string{"no_solution_leakage"}},
		{Name: "confined", What: "files, the browser's own pages, scripts in addresses, the database's port and hosts outside cannot be opened",
			Remedy: "allow only the application's own origin in world.yaml", Also: []string{"network_policy"}},
		{Name: "contract", What: "rewards are finite and within their range, steps count up by one, nothing follows the end",
			Remedy: "this is a fault of Pommel's: please report it", Also: []string{"reward_well_formed", "state_contract"}},
		{Name: "schema", What: "every observation is as its JSON Schema says",
			Remedy: "this is a fault of Pommel's: please report it", Also: []string{"observation_schema"}},
	}
}

func remedyOf(name string) string {
	for _, p := range Properties() {
		if p.Name == name {
			return p.Remedy
		}
	}
	return ""
}
