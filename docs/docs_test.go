// Package docs holds what people read. Its tests hold it against the code.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/admin"
	"github.com/bide-mq/bide/internal/handler"
	"github.com/bide-mq/bide/internal/pgtest"
	"github.com/bide-mq/bide/internal/worker"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// blocks returns the code blocks in a language.
func blocks(page, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestReadmeSQLRuns(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Exec(t.Context(), read(t, "../deploy/postgres/shop.sql"))
	require.NoError(t, err)
	for _, page := range []string{"../README.md", "integration.md"} {
		for _, sql := range blocks(read(t, page), "sql") {
			if strings.Contains(sql, "CREATE ROLE") {
				continue // roles outlive the test's database
			}
			_, err := db.Exec(t.Context(), sql)
			require.NoError(t, err, "%s: %s", page, sql)
		}
	}
	var closed, cancelled int
	require.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE status = 'PAID'),
		(SELECT count(*) FROM bide.task WHERE biz_id = '1' AND state = 'CANCELLED') FROM shop.orders`).Scan(&closed, &cancelled))
	require.Equal(t, [2]int{1, 1}, [2]int{closed, cancelled}, "the README's order is placed, then paid")
}

func TestReadmeGoIsTheTestedExample(t *testing.T) {
	t.Parallel()
	example := read(t, "../outbox/example_order_test.go")
	code := blocks(read(t, "../README.md"), "go")
	require.NotEmpty(t, code)
	for _, block := range code {
		require.Contains(t, example, strings.TrimSpace(block))
	}
}

func TestHandlersFilesAreSound(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Exec(t.Context(), read(t, "../deploy/postgres/shop.sql")+`;
		CREATE TABLE shop.mail (order_id bigint, template text);
		CREATE TABLE shop.vouchers (code text PRIMARY KEY, valid boolean)`)
	require.NoError(t, err)
	for _, page := range []string{"../README.md", "handlers.md"} {
		for _, text := range blocks(read(t, page), "yaml") {
			if !strings.HasPrefix(text, "handlers:") {
				text = "handlers:\n" + text
			}
			set, err := handler.Parse(page, []byte(text))
			require.NoError(t, err, text)
			require.NoError(t, set.Prepare(t.Context(), db), text)
		}
	}
}

func TestEveryMetricAndEventIsDocumented(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	admin.NewRelayMetrics(registry)
	admin.NewWorkerMetrics(registry)
	admin.NewLedgerGauges(registry, nil, nil)
	admin.WatchHeld(registry, func() int { return 0 })
	admin.WatchSession(registry, func() bide.Session { return bide.Session{} })
	described := make(chan *prometheus.Desc, 100)
	registry.Describe(described)
	close(described)
	var rows []string // metrics and events, by the first cells of the tables
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)[`{]").FindAllStringSubmatch(read(t, "operations.md"), -1) {
		rows = append(rows, m[1])
	}
	for desc := range described {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(desc.String())[1]
		require.Contains(t, rows, name, "docs/operations.md has no row for the metric")
	}
	for _, event := range worker.Events() {
		require.Contains(t, rows, string(event), "docs/operations.md has no row for the event")
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	pages = append(pages, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md")
	links := 0
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			links++
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			require.FileExists(t, target, "%s: link %s", page, m[1])
			if anchor != "" {
				require.Contains(t, anchors(read(t, target)), anchor, "%s: link %s", page, m[1])
			}
		}
	}
	require.Greater(t, links, 50)
}

// anchors returns the names that GitHub gives to a page's headings.
func anchors(page string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
