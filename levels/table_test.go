package levels_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/levels"
)

func TestTablesOfTheBrokers(t *testing.T) {
	t.Parallel()
	rocket := levels.RocketMQ()
	require.Len(t, rocket, 18)
	require.Equal(t, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", rocket.String())
	require.Equal(t, "1s 10s 1m 10m 30m 2h", levels.RabbitMQ().String())
}

func TestTablesAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	levels.RocketMQ()[0] = time.Hour
	require.Equal(t, time.Second, levels.RocketMQ()[0])
}

func TestTableString(t *testing.T) {
	t.Parallel()
	for want, table := range map[string]levels.Table{
		"":            nil,
		"90s":         {90 * time.Second},
		"1h 1d":       {60 * time.Minute, 24 * time.Hour},
		"1.5s":        {1500 * time.Millisecond},
		"0s -1s":      {0, -time.Second},
		"1h 25h 7d":   {time.Hour, 25 * time.Hour, 7 * 24 * time.Hour},
		"59m 61m 23h": {59 * time.Minute, 61 * time.Minute, 23 * time.Hour},
	} {
		require.Equal(t, want, table.String())
	}
}

func TestLess(t *testing.T) {
	t.Parallel()
	got, err := levels.Table{time.Second, time.Minute}.Less(300 * time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{700 * time.Millisecond, 59700 * time.Millisecond}, got)
}

func TestLessNamesEveryLevelThatVanishes(t *testing.T) {
	t.Parallel()
	_, err := levels.Table{time.Second, 2 * time.Second, time.Minute}.Less(2 * time.Second)
	require.EqualError(t, err, "level 1 (1s): want more than 2s, which lead and slack take off it\n"+
		"level 2 (2s): want more than 2s, which lead and slack take off it")

	_, err = levels.RabbitMQ().Less(-time.Second)
	require.EqualError(t, err, "shorten levels by -1s: want 0 or more")
}
