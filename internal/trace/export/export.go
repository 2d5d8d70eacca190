// Package export writes recorded episodes as tables, one row a step: for training and
// for analysis with tools that know nothing of Pommel.
package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/pommelgym/pommel/internal/trace"
)

// Row is one step. Columns are added at the end of this list and never change their meaning.
type Row struct {
	EpisodeID   string `json:"episode_id" parquet:"episode_id,dict"`
	World       string `json:"world" parquet:"world,dict"`
	Image       string `json:"image" parquet:"image,dict"`
	Driver      string `json:"driver" parquet:"driver,dict"`
	Task        string `json:"task" parquet:"task,dict"`
	Seed        int64  `json:"seed" parquet:"seed"`
	Split       string `json:"split" parquet:"split,dict"`
	Instruction string `json:"instruction" parquet:"instruction,dict"`
	Step        int64  `json:"step" parquet:"step"`
	// Action led to what the row shows; it is empty in the row of the reset, step 0.
	Action     string  `json:"action" parquet:"action"`
	Reward     float64 `json:"reward" parquet:"reward"`
	Terminated bool    `json:"terminated" parquet:"terminated"`
	Truncated  bool    `json:"truncated" parquet:"truncated"`
	// Success is of the episode as a whole and the same in all its rows, like Return, its
	// sum of rewards, and End, the reason for its end ("" for a record that was cut off).
	Success bool    `json:"success" parquet:"success"`
	Return  float64 `json:"return" parquet:"return"`
	End     string  `json:"end" parquet:"end,dict"`

	URL             string  `json:"url" parquet:"url,dict"`
	Title           string  `json:"title" parquet:"title,dict"`
	Text            string  `json:"text" parquet:"text,zstd"`
	FocusedBid      string  `json:"focused_bid" parquet:"focused_bid"`
	VirtualTimeMS   float64 `json:"virtual_time_ms" parquet:"virtual_time_ms"`
	ErrorKind       string  `json:"error_kind" parquet:"error_kind,dict"`
	ErrorMessage    string  `json:"error_message" parquet:"error_message"`
	ObservationHash string  `json:"observation_hash" parquet:"observation_hash"`
	// Elements, Changes and Info are JSON.
	Elements json.RawMessage `json:"elements" parquet:"elements,json,zstd"`
	Changes  json.RawMessage `json:"changes" parquet:"changes,json,zstd"`
	Info     json.RawMessage `json:"info" parquet:"info,json,zstd"`
	HTML     string          `json:"html,omitempty" parquet:"html,zstd"`
	// Screenshot is the picture itself, base64 in JSON.
	Screenshot       []byte `json:"screenshot,omitempty" parquet:"screenshot"`
	ScreenshotFormat string `json:"screenshot_format,omitempty" parquet:"screenshot_format,dict"`
}

// told is what a row takes out of info.
type told struct {
	ObservationHash string          `json:"observation_hash"`
	Changes         json.RawMessage `json:"changes"`
}

// Rows are the rows of one episode; dir is its folder.
func Rows(t *trace.Trace, dir string) ([]Row, error) {
	var out []Row
	for _, st := range t.Steps {
		r, err := rowOf(t, st, dir)
		if err != nil {
			return nil, fmt.Errorf("episode %s, step %d: %w", t.Header.EpisodeID, st.Step, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func rowOf(t *trace.Trace, st trace.Step, dir string) (Row, error) {
	h := t.Header
	r := Row{
		EpisodeID: h.EpisodeID, World: h.World, Image: h.Image, Driver: h.Driver, Task: h.Task, Seed: h.Seed,
		Split: h.Split, Instruction: h.Instruction, Step: int64(st.Step), Action: st.Action, Reward: st.Reward,
		Terminated: st.Terminated, Truncated: st.Truncated, Info: orNull(st.Info), Changes: orNull(nil), Elements: orNull(nil),
	}
	if t.End != nil {
		r.Success, r.Return, r.End = t.End.Success, t.End.Reward, t.End.Reason
	}
	if len(st.Info) > 0 {
		var in told
		if err := json.Unmarshal(st.Info, &in); err != nil {
			return r, fmt.Errorf("read info: %w", err)
		}
		r.ObservationHash, r.Changes = in.ObservationHash, orNull(in.Changes)
	}
	if st.Observation == nil {
		return r, nil
	}
	return r, r.observe(st, dir)
}

func (r *Row) observe(st trace.Step, dir string) error {
	o := st.Observation
	r.URL, r.Title, r.Text, r.FocusedBid, r.VirtualTimeMS, r.HTML = o.URL, o.Title, o.Text, o.FocusedBid, o.VirtualTimeMS, o.HTML
	if e := o.LastActionError; e != nil {
		r.ErrorKind, r.ErrorMessage = string(e.Kind), e.Message
	}
	elements, err := json.Marshal(o.Elements)
	if err != nil {
		return fmt.Errorf("encode elements: %w", err)
	}
	r.Elements = elements
	if st.Screenshot == "" {
		return nil
	}
	// The name is a file in the episode's own folder, whatever a record says.
	if r.Screenshot, err = os.ReadFile(filepath.Join(dir, filepath.Base(st.Screenshot))); err != nil {
		return fmt.Errorf("read the picture: %w", err)
	}
	if o.Screenshot != nil {
		r.ScreenshotFormat = o.Screenshot.Format
	}
	return nil
}

func orNull(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}

// Writer takes the rows of one episode after another. Close writes what is left.
type Writer interface {
	Write(rows []Row) error
	Close() error
}

// JSONL writes one JSON object a line.
func JSONL(w io.Writer) Writer {
	b := bufio.NewWriterSize(w, 256<<10)
	return &jsonl{b, json.NewEncoder(b)}
}

type jsonl struct {
	w   *bufio.Writer
	enc *json.Encoder
}

func (j *jsonl) Write(rows []Row) error {
	for _, r := range rows {
		if err := j.enc.Encode(r); err != nil {
			return fmt.Errorf("write row: %w", err)
		}
	}
	return nil
}

func (j *jsonl) Close() error { return j.w.Flush() }

// Parquet writes a Parquet file, compressed by zstd.
func Parquet(w io.Writer) Writer {
	return &table{w: parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))}
}

// rowGroup bounds the rows that are held in memory until they are written.
const rowGroup = 2000

type table struct {
	w *parquet.GenericWriter[Row]
}

func (t *table) Write(rows []Row) error {
	if _, err := t.w.Write(rows); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

func (t *table) Close() error {
	if err := t.w.Close(); err != nil {
		return fmt.Errorf("finish the file: %w", err)
	}
	return nil
}
