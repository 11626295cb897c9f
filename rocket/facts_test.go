package rocket

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/levels"
)

func TestTable(t *testing.T) {
	standard, err := parseTable(levels.RocketMQ().String())
	require.NoError(t, err)
	require.Equal(t, []time.Duration(levels.RocketMQ()), standard.delays())
	for i, l := range standard {
		require.Equal(t, i+1, l.number)
	}
	odd, err := parseTable(" 30s  1s 1m 5s 30s 60s\t2h ")
	require.NoError(t, err)
	require.Equal(t, table{
		{time.Second, 2}, {5 * time.Second, 4}, {30 * time.Second, 1}, {time.Minute, 3}, {2 * time.Hour, 7},
	}, odd, "ascending, each delay once, by the broker's numbers")
	for text, want := range map[string]string{
		"": "no levels", "  ": "no levels", "1s 0s": "level 2", "1s 5": "level 2", "s": "level 1", "1s -1s": "level 2", "1s,5s": "level 1",
	} {
		_, err := parseTable(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func FuzzTable(f *testing.F) {
	f.Add("1s 5s 10s")
	f.Add("5s 1s 1s 1d")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTable(text)
		if err != nil {
			return
		}
		require.NotEmpty(t, parsed)
		for i, l := range parsed {
			require.Positive(t, l.delay)
			require.Positive(t, l.number)
			require.True(t, i == 0 || parsed[i-1].delay < l.delay)
		}
	})
}

// broker is one that answers.
func broker(version int, settings map[string]string) BrokerFacts {
	return BrokerFacts{Name: "b", Address: "h:1", Version: version, Settings: settings}
}

func line4() BrokerFacts { return broker(407, map[string]string{"messageDelayLevel": "1s 5s"}) }

func line5() BrokerFacts {
	return broker(513, map[string]string{"messageDelayLevel": "1s 5s", "timerWheelEnable": "true", "timerMaxDelaySec": "259200"})
}

// with changes one setting.
func with(b BrokerFacts, setting, value string) BrokerFacts {
	b.Settings[setting] = value
	return b
}

// silent is a broker that denies the question for its configuration.
func silent(version int) BrokerFacts {
	return BrokerFacts{Name: "b", Address: "h:1", Version: version, Denied: errors.New("code 16: no")}
}

func TestDecide(t *testing.T) {
	type want struct {
		mode    Mode
		horizon time.Duration
		levels  int
		problem string
		remedy  string
	}
	levels2 := want{mode: Levels, levels: 2}
	timers2h := want{mode: Timers, horizon: 2 * time.Hour}
	for _, tt := range []struct {
		name    string
		cfg     Config
		brokers []BrokerFacts
		want    want
	}{
		{"auto on 4.x", Config{Mode: Auto}, []BrokerFacts{line4()}, levels2},
		{"auto on 5.x", Config{Mode: Auto}, []BrokerFacts{line5()}, timers2h},
		{"auto on 5.x without a wheel", Config{Mode: Auto}, []BrokerFacts{with(line5(), "timerWheelEnable", "false")}, levels2},
		{"auto on a mixed cluster", Config{Mode: Auto}, []BrokerFacts{line5(), line4()}, levels2},
		{"levels on 5.x", Config{Mode: Levels}, []BrokerFacts{line5()}, levels2},
		{"timers on 4.x", Config{Mode: Timers}, []BrokerFacts{line4()}, want{problem: "4.x line", remedy: "choose mode levels or auto"}},
		{"timers without a wheel", Config{Mode: Timers}, []BrokerFacts{with(line5(), "timerWheelEnable", "false")}, want{problem: "timerWheelEnable=false", remedy: "choose mode levels"}},
		{"timers on a mixed cluster", Config{Mode: Timers}, []BrokerFacts{line5(), line4()}, want{problem: "4.x line", remedy: "choose mode levels"}},
		{"short timers", Config{Mode: Auto}, []BrokerFacts{with(line5(), "timerMaxDelaySec", "60")}, want{mode: Timers, horizon: 50 * time.Second}},
		{"the least counts", Config{Mode: Auto}, []BrokerFacts{line5(), with(line5(), "timerMaxDelaySec", "70")}, want{mode: Timers, horizon: time.Minute}},
		{"too short timers", Config{Mode: Timers}, []BrokerFacts{with(line5(), "timerMaxDelaySec", "14")}, want{problem: "up to 14s only", remedy: "choose mode levels"}},
		{"horizon beyond the maximum", Config{Mode: Auto, Horizon: 72 * time.Hour}, []BrokerFacts{line5()}, want{problem: "up to 72h0m0s, and the horizon is 72h0m0s", remedy: "set the horizon to 71h59m50s or less"}},
		{"horizon at the limit", Config{Mode: Auto, Horizon: 72*time.Hour - 10*time.Second}, []BrokerFacts{line5()}, want{mode: Timers, horizon: 72*time.Hour - 10*time.Second}},
		{"unreadable maximum", Config{Mode: Timers}, []BrokerFacts{with(line5(), "timerMaxDelaySec", "")}, want{problem: "timerMaxDelaySec that cannot be read", remedy: "maximum delay"}},
		{"two tables", Config{Mode: Levels}, []BrokerFacts{line4(), with(line4(), "messageDelayLevel", "5s 1s")}, want{problem: "messageDelayLevel", remedy: "the same messageDelayLevel"}},
		{"unreadable table", Config{Mode: Levels}, []BrokerFacts{with(line4(), "messageDelayLevel", "1w")}, want{problem: "cannot be read", remedy: "correct it"}},

		{"denied, auto on 5.x", Config{Mode: Auto}, []BrokerFacts{silent(513)}, want{problem: "does not tell its configuration", remedy: "maximum delay"}},
		{"denied, auto on 5.x with a maximum", Config{Mode: Auto, MaxDelay: time.Hour}, []BrokerFacts{silent(513)}, want{mode: Timers, horizon: time.Hour - 10*time.Second}},
		{"denied, auto on 4.x with a maximum", Config{Mode: Auto, MaxDelay: time.Hour}, []BrokerFacts{silent(407)}, want{problem: "does not tell its configuration", remedy: "messageDelayLevel"}},
		{"denied, auto with a table", Config{Mode: Auto, Table: "1s 5s"}, []BrokerFacts{silent(513)}, levels2},
		{"denied, levels", Config{Mode: Levels}, []BrokerFacts{silent(407)}, want{problem: "does not tell its configuration", remedy: "messageDelayLevel as the table"}},
		{"denied, timers", Config{Mode: Timers}, []BrokerFacts{silent(513)}, want{problem: "does not tell its configuration", remedy: "maximum delay"}},

		{"configured table", Config{Mode: Levels, Table: "1s 5s"}, nil, levels2},
		{"configured 4.x", Config{Mode: Auto, Version: "4.9.7", Table: "1s 5s"}, nil, levels2},
		{"configured 5.x", Config{Mode: Auto, Version: "5", MaxDelay: 960 * time.Hour}, nil, timers2h},
		{"a configured version overrules", Config{Mode: Timers, Version: "5.3.0", MaxDelay: time.Hour}, []BrokerFacts{line4()}, want{mode: Timers, horizon: time.Hour - 10*time.Second}},
		{"timers on a configured 4.x", Config{Mode: Timers, Version: "4.9"}, []BrokerFacts{line5()}, want{problem: "delivers timer messages at once", remedy: "choose mode levels"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decide(tt.cfg, tt.brokers)
			if tt.want.problem != "" {
				fault := new(bide.Fault)
				require.ErrorAs(t, err, &fault)
				require.Contains(t, fault.Error(), tt.want.problem)
				require.Contains(t, fault.Remedy, tt.want.remedy)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want.mode, got.Mode)
			require.Equal(t, tt.want.horizon, got.Horizon)
			require.Len(t, got.Levels(), tt.want.levels)
			require.NotEmpty(t, got.String())
		})
	}
}

// TestMustAsk: nobody is asked where the configuration has every fact that
// matters.
func TestMustAsk(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want bool
	}{
		{"nothing", Config{Mode: Auto}, true},
		{"levels", Config{Mode: Levels}, true},
		{"levels, table", Config{Mode: Levels, Table: "1s"}, false},
		{"auto, table", Config{Mode: Auto, Table: "1s"}, true},
		{"auto, 4.x", Config{Mode: Auto, Version: "4"}, true},
		{"auto, 4.x, table", Config{Mode: Auto, Version: "4", Table: "1s"}, false},
		{"auto, 5.x", Config{Mode: Auto, Version: "5"}, true},
		{"auto, 5.x, maximum", Config{Mode: Auto, Version: "5", MaxDelay: time.Hour}, false},
		{"timers, maximum", Config{Mode: Timers, MaxDelay: time.Hour}, true},
		{"timers, 5.x, maximum", Config{Mode: Timers, Version: "5", MaxDelay: time.Hour}, false},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, tt.cfg.mustAsk()) })
	}
}
