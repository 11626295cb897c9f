package remoting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide/rocket/internal/remoting"
)

func TestRoute(t *testing.T) {
	const body = `{"brokerDatas":[
		{"brokerAddrs":{"0":"10.0.0.2:10911","1":"10.0.0.3:10911"},"brokerName":"b","cluster":"C"},
		{"brokerAddrs":{"1":"10.0.0.4:10911"},"brokerName":"a","cluster":"C"},
		{"brokerAddrs":{"0":"10.0.0.5:10911"},"brokerName":"c","cluster":"C"}],
		"filterServerTable":{},"queueDatas":[
		{"brokerName":"b","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":4},
		{"brokerName":"c","perm":4,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`
	got, err := remoting.ParseRoute([]byte(body))
	require.NoError(t, err)
	require.Equal(t, []remoting.Broker{
		{Name: "a", Cluster: "C"},
		{Name: "b", Cluster: "C", Master: "10.0.0.2:10911", Queues: 4},
		{Name: "c", Cluster: "C", Master: "10.0.0.5:10911"},
	}, got, "a group without a master, one with more queues to read than to write, one that takes no messages")
}

// TestCluster reads the list as 4.x writes it, with numbers for keys.
func TestCluster(t *testing.T) {
	for name, body := range map[string]string{
		"4.x": `{"brokerAddrTable":{"broker-0":{"brokerAddrs":{0:"127.0.0.1:1",12:"127.0.0.1:2"},"brokerName":"broker-0","cluster":"C"}},"clusterAddrTable":{"C":["broker-0"]}}`,
		"5.x": `{"brokerAddrTable":{"broker-0":{"brokerAddrs":{"0":"127.0.0.1:1","12":"127.0.0.1:2"},"brokerName":"broker-0","cluster":"C","enableActingMaster":false}},"clusterAddrTable":{"C":["broker-0"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := remoting.ParseCluster([]byte(body))
			require.NoError(t, err)
			require.Equal(t, []remoting.Broker{{Name: "broker-0", Cluster: "C", Master: "127.0.0.1:1"}}, got)
		})
	}
	got, err := remoting.ParseCluster([]byte(`{"brokerAddrTable":{},"clusterAddrTable":{}}`))
	require.NoError(t, err)
	require.Empty(t, got)
}

func FuzzRoute(f *testing.F) {
	f.Add([]byte(`{"brokerDatas":[{"brokerAddrs":{0:"a:1"},"brokerName":"b"}],"queueDatas":[{"brokerName":"b","perm":6}]}`))
	f.Add([]byte(`{"brokerDatas":[null],"queueDatas":null}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = remoting.ParseRoute(b)
		_, _ = remoting.ParseCluster(b)
	})
}
