package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rocket says where RocketMQ is and how it is used. Section of [Broker].
type Rocket struct {
	RocketNameServers   string        `envconfig:"BIDE_ROCKETMQ_NAME_SERVERS" desc:"Name servers, host:port, separated by commas or spaces. Required for rocketmq."`
	RocketMode          string        `envconfig:"BIDE_ROCKETMQ_MODE" default:"auto" desc:"auto (timers where the brokers have them, levels elsewhere), timers (5.x) or levels."`
	RocketAccessKey     string        `envconfig:"BIDE_ROCKETMQ_ACCESS_KEY" desc:"Access key where the brokers have access control."`
	RocketSecretKey     string        `envconfig:"BIDE_ROCKETMQ_SECRET_KEY" desc:"Secret key of the access key. A secret: see BIDE_ROCKETMQ_SECRET_KEY_FILE."`
	RocketSecretKeyFile string        `envconfig:"BIDE_ROCKETMQ_SECRET_KEY_FILE" desc:"File that holds the secret key, instead of the variable."`
	RocketTLS           bool          `envconfig:"BIDE_ROCKETMQ_TLS" default:"false" desc:"Refused when true: RocketMQ's Go client cannot verify certificates. Use a verifying tunnel."`
	RocketNamespace     string        `envconfig:"BIDE_ROCKETMQ_NAMESPACE" desc:"Namespace of a shared or managed RocketMQ."`
	RocketCluster       string        `envconfig:"BIDE_ROCKETMQ_CLUSTER" desc:"The brokers' cluster where the name servers know several."`
	RocketPrefix        string        `envconfig:"BIDE_ROCKETMQ_PREFIX" default:"bide" desc:"Opens the names of topic and groups."`
	RocketQueues        int           `envconfig:"BIDE_ROCKETMQ_QUEUES" default:"8" desc:"Queues of the topic on each broker when it is made, 1 to 64. More consumers than queues leaves some without work."`
	RocketHorizon       time.Duration `envconfig:"BIDE_ROCKETMQ_HORIZON" default:"0s" desc:"Longest delay to use a timer for, a duration of up to 2400h; longer ones wait in the ledger. 0s stands for 2h, or less where the brokers take less."`
	RocketVersion       string        `envconfig:"BIDE_ROCKETMQ_VERSION" desc:"The brokers' version, such as 4.9.7 or 5.3, where they may not be asked."`
	RocketLevels        string        `envconfig:"BIDE_ROCKETMQ_LEVELS" desc:"The brokers' messageDelayLevel, where they may not be asked."`
	RocketMaxDelay      time.Duration `envconfig:"BIDE_ROCKETMQ_MAX_DELAY" default:"0s" desc:"The longest timer the brokers take, a duration such as 960h, where they may not be asked. 0s asks."`
}

// NameServers lists the configured name servers.
func (r *Rocket) NameServers() []string {
	return strings.FieldsFunc(r.RocketNameServers, func(c rune) bool { return c == ',' || c == ' ' })
}

func (r *Rocket) validate() []error {
	var err error
	r.RocketSecretKey, err = secret("ROCKETMQ_SECRET_KEY", r.RocketSecretKey, r.RocketSecretKeyFile)
	faults := compact(err,
		between("ROCKETMQ_HORIZON", r.RocketHorizon, 0, 100*24*time.Hour),
		between("ROCKETMQ_MAX_DELAY", r.RocketMaxDelay, 0, 366*24*time.Hour))
	if !slices.Contains([]string{"auto", "timers", "levels"}, r.RocketMode) {
		faults = append(faults, fmt.Errorf("BIDE_ROCKETMQ_MODE=%q: want auto, timers or levels", r.RocketMode))
	}
	return faults
}
