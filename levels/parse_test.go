package levels_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bide-mq/bide/levels"
)

func TestParseTable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]levels.Table{
		"1s":                             {time.Second},
		" \t1s\n 10m  ":                  {time.Second, 10 * time.Minute},
		"59s 1m 61s 1h 1d":               {59 * time.Second, time.Minute, 61 * time.Second, time.Hour, 24 * time.Hour},
		"007s":                           {7 * time.Second},
		"106751d":                        {106751 * 24 * time.Hour},
		"1s 10s 1m 10m 30m 2h":           levels.RabbitMQ(),
		strings.Repeat(" ", 999) + "2h ": {2 * time.Hour},
	} {
		got, err := levels.ParseTable(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestParseTableRefuses(t *testing.T) {
	t.Parallel()
	const number = "want a whole number above 0 before the unit"
	for text, want := range map[string]string{
		"":                        `no levels: want delays such as "1s 10s 1m"`,
		" \n\t":                   `no levels: want delays such as "1s 10s 1m"`,
		"10":                      `level 1 "10": no unit, want s, m, h or d after the number`,
		"1s 5x":                   `level 2 "5x": unknown unit, want s, m, h or d`,
		"1S":                      `level 1 "1S": unknown unit, want s, m, h or d`,
		"1s,5s":                   `level 1 "1s,5s": ` + number,
		"1s 5ｓ":                   `level 2 "5ｓ": unknown unit, want s, m, h or d`,
		"s":                       `level 1 "s": ` + number,
		"0s":                      `level 1 "0s": ` + number,
		"-1s":                     `level 1 "-1s": ` + number,
		"+1s":                     `level 1 "+1s": ` + number,
		"1.5s":                    `level 1 "1.5s": ` + number,
		"1_0s":                    `level 1 "1_0s": ` + number,
		"500ms":                   `level 1 "500ms": ` + number,
		"106752d":                 `level 1 "106752d": too long, want at most 106751d`,
		"9223372037s":             `level 1 "9223372037s": too long, want at most 9223372036s`,
		"99999999999999999999h":   `level 1 "99999999999999999999h": too long, want at most 2562047h`,
		"1m 10s":                  `level 2 "10s": shorter than level 1, want ascending delays`,
		"1s 1m 60s":               `level 3 "60s": as long as level 2, want each delay once`,
		strings.Repeat("x", 1000): `level 1 "` + strings.Repeat("x", 24) + `": unknown unit, want s, m, h or d`,
	} {
		table, err := levels.ParseTable(text)
		require.EqualError(t, err, want)
		require.Nil(t, table)
	}
}

func TestParseTableReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := levels.ParseTable("1s 5 10s 7y 9s 10s 1m")
	require.EqualError(t, err, strings.Join([]string{
		`level 2 "5": no unit, want s, m, h or d after the number`,
		`level 4 "7y": unknown unit, want s, m, h or d`,
		`level 5 "9s": shorter than level 3, want ascending delays`,
		`level 6 "10s": as long as level 3, want each delay once`,
	}, "\n"))
}

func TestParseTableReadsWhatStringWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		got, err := levels.ParseTable(table.String())
		require.NoError(t, err)
		require.Equal(t, table, got)
	})
}

func FuzzParseTable(f *testing.F) {
	f.Add(levels.RocketMQ().String())
	f.Add(levels.RabbitMQ().String())
	for _, seed := range []string{"", "s", "0s", "-1s", "1s 1s", "2s 1s", "1m 60s", "106752d", "1 s", "1s\u00a02s", "\xff", "00001s 1d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := levels.ParseTable(text)
		if err != nil {
			require.Nil(t, table)
			return
		}
		require.Len(t, table, len(strings.Fields(text)))
		var last time.Duration
		for _, d := range table {
			require.Greater(t, d, last)
			last = d
		}
		again, err := levels.ParseTable(table.String())
		require.NoError(t, err)
		require.Equal(t, table, again)
	})
}

// drawTable draws a valid table of whole seconds, of which minutes, hours and
// days are more likely than chance would have it.
func drawTable(t *rapid.T) levels.Table {
	unit := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour})
	var table levels.Table
	var last time.Duration
	for range rapid.IntRange(1, 20).Draw(t, "levels") {
		step := unit.Draw(t, "unit") * time.Duration(rapid.IntRange(1, 100).Draw(t, "count"))
		last += step
		table = append(table, last)
	}
	return table
}
