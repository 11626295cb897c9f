package demo

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is how often progress is told where no bar can be drawn.
const plainEvery = 5 * time.Second

// reporter tells what happens: with a bar on a terminal, in lines elsewhere.
type reporter struct {
	mu     sync.Mutex
	out    io.Writer
	opened time.Time
	told   time.Time
	bar    *progressbar.ProgressBar
}

func newReporter(out io.Writer, orders int) *reporter {
	r := &reporter{out: out, opened: time.Now(), told: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		r.bar = progressbar.NewOptions(orders,
			progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false),
			progressbar.OptionClearOnFinish(), progressbar.OptionUseANSICodes(true))
	}
	return r
}

// say writes a line, stamped with the time since the start. What cannot be
// written is lost: only the audit's line matters to anyone but the reader.
func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(format, args...)
}

func (r *reporter) line(format string, args ...any) {
	if r.bar != nil {
		_ = r.bar.Clear()
	}
	_, _ = fmt.Fprintf(r.out, "%5.1fs  %s\n", time.Since(r.opened).Seconds(), fmt.Sprintf(format, args...))
}

func (r *reporter) progress(t tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf("%d orders placed, %d paid, %d closed", t.placed(), t.paid, t.closed)
	switch {
	case r.bar != nil:
		r.bar.Describe(text)
		_ = r.bar.Set(t.settled())
	case time.Since(r.told) >= plainEvery:
		r.told = time.Now()
		r.line("%s", text)
	}
}

// done takes the bar away, so that lines can follow.
func (r *reporter) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		_ = r.bar.Exit()
		_ = r.bar.Clear()
		r.bar = nil
	}
}
