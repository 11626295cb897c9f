package remoting

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Broker is one broker group, reached at its master.
type Broker struct {
	Name    string
	Cluster string
	// Master is host:port; empty while the group has none.
	Master string
	// Queues is the number of a topic's queues that can be written and read
	// there; 0 where no topic is spoken of.
	Queues int
}

// brokerData is how name servers describe a broker group. Members are keyed by
// broker id, and the master's is 0.
type brokerData struct {
	Cluster string            `json:"cluster"`
	Name    string            `json:"brokerName"`
	Members map[string]string `json:"brokerAddrs"`
}

func (d brokerData) broker() Broker {
	return Broker{Name: d.Name, Cluster: d.Cluster, Master: d.Members["0"]}
}

// Route returns the brokers that have the topic, by name; none when the name
// server knows no such topic.
func (c *Conn) Route(ctx context.Context, topic string) ([]Broker, error) {
	response, err := c.Call(ctx, codeRoute, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"}, nil)
	if IsRefusal(err, TopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the route of %s: %w", topic, err)
	}
	brokers, err := parseRoute(response.Body)
	if err != nil {
		return nil, fmt.Errorf("route of %s: %w", topic, err)
	}
	return brokers, nil
}

func parseRoute(body []byte) ([]Broker, error) {
	var route struct {
		Brokers []brokerData `json:"brokerDatas"`
		Queues  []struct {
			Name  string `json:"brokerName"`
			Read  int    `json:"readQueueNums"`
			Write int    `json:"writeQueueNums"`
			Perm  int    `json:"perm"`
		} `json:"queueDatas"`
	}
	if err := json.Unmarshal(standard(body), &route); err != nil {
		return nil, err
	}
	queues := map[string]int{}
	for _, q := range route.Queues {
		if q.Perm&6 == 6 {
			queues[q.Name] = min(q.Read, q.Write)
		}
	}
	brokers := make([]Broker, len(route.Brokers))
	for i, d := range route.Brokers {
		brokers[i] = d.broker()
		brokers[i].Queues = queues[d.Name]
	}
	slices.SortFunc(brokers, byName)
	return brokers, nil
}

// Cluster returns all brokers that the name server knows, by name.
func (c *Conn) Cluster(ctx context.Context) ([]Broker, error) {
	response, err := c.Call(ctx, codeCluster, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the brokers: %w", err)
	}
	brokers, err := parseCluster(response.Body)
	if err != nil {
		return nil, fmt.Errorf("list of brokers: %w", err)
	}
	return brokers, nil
}

func parseCluster(body []byte) ([]Broker, error) {
	var table struct {
		Brokers map[string]brokerData `json:"brokerAddrTable"`
	}
	if err := json.Unmarshal(standard(body), &table); err != nil {
		return nil, err
	}
	var brokers []Broker
	for _, d := range table.Brokers {
		brokers = append(brokers, d.broker())
	}
	slices.SortFunc(brokers, byName)
	return brokers, nil
}

func byName(a, b Broker) int { return strings.Compare(a.Name, b.Name) }

// bareKey is a broker id as 4.x writes it: a number where JSON wants a string.
var bareKey = regexp.MustCompile(`([{,])(\d+):"`)

// standard returns JSON by the book.
func standard(body []byte) []byte {
	if json.Valid(body) {
		return body
	}
	return bareKey.ReplaceAll(body, []byte(`$1"$2":"`))
}
