package remoting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Request codes (RequestCode.java); the same in 4.x and 5.x.
const (
	codePosition     = 14
	codeCreateTopic  = 17
	codeBrokerConfig = 26
	codeRuntimeInfo  = 28
	codeMaxOffset    = 30
	codeConsumers    = 38
	codeRoute        = 105
	codeCluster      = 106
)

// Response codes (ResponseCode.java, RemotingSysResponseCode.java).
const (
	SystemError     = 1
	SystemBusy      = 2
	MessageIllegal  = 13
	Unavailable     = 14
	NoPermission    = 16
	TopicNotExist   = 17
	NoPosition      = 22
	ConsumerUnknown = 206
)

// IsRefusal reports whether the server answered with the code.
func IsRefusal(err error, code int) bool {
	refusal, ok := errors.AsType[*Refusal](err)
	return ok && refusal.Code == code
}

// BrokerConfig returns a broker's settings and the ordinal of its version. The
// version comes with a refusal, too.
func (c *Conn) BrokerConfig(ctx context.Context) (settings map[string]string, version int, err error) {
	response, err := c.Call(ctx, codeBrokerConfig, nil, nil)
	if err != nil {
		return nil, response.Version, fmt.Errorf("ask for the configuration: %w", err)
	}
	settings = map[string]string{}
	for line := range strings.Lines(string(response.Body)) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		settings[name] = value
	}
	return settings, response.Version, nil
}

// RuntimeInfo returns a broker's statistics.
func (c *Conn) RuntimeInfo(ctx context.Context) (map[string]string, error) {
	response, err := c.Call(ctx, codeRuntimeInfo, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for runtime information: %w", err)
	}
	var info struct {
		Table map[string]string `json:"table"`
	}
	if err := json.Unmarshal(response.Body, &info); err != nil {
		return nil, fmt.Errorf("runtime information: %w", err)
	}
	return info.Table, nil
}

// MaxOffset returns the number that the next message in the queue will get.
func (c *Conn) MaxOffset(ctx context.Context, topic string, queue int) (int64, error) {
	response, err := c.Call(ctx, codeMaxOffset, map[string]string{"topic": topic, "queueId": strconv.Itoa(queue)}, nil)
	if err != nil {
		return 0, fmt.Errorf("ask for the end of queue %d: %w", queue, err)
	}
	return number(response, "offset")
}

func number(response Frame, field string) (int64, error) {
	n, err := strconv.ParseInt(response.Fields[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("answer to %s: %w", field, err)
	}
	return n, nil
}

// Position returns the number of the first message in the queue that the group
// has not acknowledged, as the broker has been told; 0 when it has not.
func (c *Conn) Position(ctx context.Context, group, topic string, queue int) (int64, error) {
	response, err := c.Call(ctx, codePosition, map[string]string{"consumerGroup": group, "topic": topic, "queueId": strconv.Itoa(queue)}, nil)
	if IsRefusal(err, NoPosition) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the position in queue %d: %w", queue, err)
	}
	return number(response, "offset")
}

// Consumers returns the ids of the clients that consume in a group. A group
// that the broker does not know has none.
func (c *Conn) Consumers(ctx context.Context, group string) ([]string, error) {
	response, err := c.Call(ctx, codeConsumers, map[string]string{"consumerGroup": group}, nil)
	// 4.x and 5.x answer SYSTEM_ERROR for a group without a consumer.
	if IsRefusal(err, SystemError) || IsRefusal(err, ConsumerUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the consumers of %s: %w", group, err)
	}
	var list struct {
		IDs []string `json:"consumerIdList"`
	}
	if err := json.Unmarshal(response.Body, &list); err != nil {
		return nil, fmt.Errorf("consumers of %s: %w", group, err)
	}
	return list.IDs, nil
}

// permissions of a topic: read (4) and write (2).
const permissions = "6"

// CreateTopic makes a topic on a broker, or changes its number of queues.
func (c *Conn) CreateTopic(ctx context.Context, topic string, queues int) error {
	n := strconv.Itoa(queues)
	_, err := c.Call(ctx, codeCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": permissions,
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}
