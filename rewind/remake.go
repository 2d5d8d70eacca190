package rewind

// remakeDead makes processes again that have ended.
func (w *rewinder) remakeDead() error {
	for _, st := range w.dead {
		return fail(ReasonProcess, "process %d has ended", st.pid)
	}
	return nil
}
