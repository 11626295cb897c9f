package brokertest_test

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bide-mq/bide"
	"github.com/bide-mq/bide/internal/brokertest"
)

// TestFaultyPublisher shows what each fault does to the caller's knowledge and
// to the broker's.
func TestFaultyPublisher(t *testing.T) {
	for _, tt := range []struct {
		fault  brokertest.Fault
		status bide.Status
		reason error
		copies int
	}{
		{brokertest.NoFault, bide.Confirmed, nil, 1},
		{brokertest.Refuse, bide.Refused, bide.ErrRefused, 0},
		{brokertest.LoseRequest, bide.Unknown, bide.ErrSessionDown, 0},
		{brokertest.LoseAnswer, bide.Unknown, bide.ErrSessionDown, 1},
		{brokertest.LoseMessage, bide.Confirmed, nil, 0},
		{brokertest.Duplicate, bide.Confirmed, nil, 2},
		{brokertest.TimeOut, bide.Unknown, bide.ErrConfirmTimeout, 0},
	} {
		broker := brokertest.NewMemory(bide.Capabilities{Delays: []time.Duration{time.Second}, Window: 8})
		ledger := brokertest.NewLedger()
		inner := broker.Publisher(ledger)
		brokertest.Start(t, inner)
		p := &brokertest.FaultyPublisher{Publisher: inner, Fault: func(s bide.Send) brokertest.Fault {
			if s.Message.TaskID == 2 {
				return tt.fault
			}
			return brokertest.NoFault
		}}
		sends := make([]bide.Send, 3)
		for i := range sends {
			sends[i].Message = bide.Message{Ledger: ledger, TaskID: int64(i + 1)}
		}
		outcomes := p.Publish(t.Context(), sends)
		require.Equal(t, bide.Confirmed, outcomes[0].Status)
		require.Equal(t, tt.status, outcomes[1].Status)
		require.ErrorIs(t, outcomes[1].Err, tt.reason)
		require.Equal(t, bide.Confirmed, outcomes[2].Status)
		require.Equal(t, 2+tt.copies, broker.Waiting(ledger))
	}
}

func TestSometimesIsRepeatable(t *testing.T) {
	draw := func() (drawn []brokertest.Fault) {
		fault := brokertest.Sometimes(7, 0.3, brokertest.Refuse, brokertest.Duplicate)
		for range 1000 {
			drawn = append(drawn, fault(bide.Send{}))
		}
		return drawn
	}
	first := draw()
	require.Equal(t, first, draw())
	n := map[brokertest.Fault]int{}
	for _, f := range first {
		n[f]++
	}
	require.InDelta(t, 700, n[brokertest.NoFault], 60)
	require.InDelta(t, 150, n[brokertest.Refuse], 40)
}

// TestFaultySubscriber shows copies, postponed, garbled and unacknowledged
// deliveries, in the time of a bubble.
func TestFaultySubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := brokertest.NewMemory(bide.Capabilities{Delays: []time.Duration{time.Second}, Window: 8})
		ledger := brokertest.NewLedger()
		faults := map[string]brokertest.DeliveryFault{
			"copied": {Copies: 2}, "late": {Delay: time.Minute}, "abc": {Garble: true}, "unheard": {LoseAck: true},
		}
		s := &brokertest.FaultySubscriber{
			Subscriber: broker.Subscriber(ledger),
			Fault:      func(d bide.Delivery) brokertest.DeliveryFault { return faults[string(d.Body)] },
		}
		arrived := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- s.Subscribe(ctx, func(d bide.Delivery) { arrived <- string(d.Body); d.Ack() })
		}()
		for body := range faults {
			broker.Inject(ledger, []byte(body))
		}
		<-time.After(time.Second)
		require.Len(t, arrived, 5)
		<-time.After(time.Minute)
		require.Len(t, arrived, 6)
		n := map[string]int{}
		for range 6 {
			n[<-arrived]++
		}
		require.Equal(t, map[string]int{"copied": 3, "late": 1, "cba": 1, "unheard": 1}, n)
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, 1, broker.Waiting(ledger), "what was not acknowledged is there again")
	})
}

func TestMemoryOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := brokertest.NewMemory(bide.Capabilities{Delays: []time.Duration{time.Second}, Window: 8})
		ledger := brokertest.NewLedger()
		p := broker.Publisher(ledger)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		publish := func() bide.Status {
			return p.Publish(ctx, []bide.Send{{Level: 1, Message: bide.Message{Ledger: ledger, TaskID: 1}}})[0].Status
		}
		synctest.Wait()
		require.Equal(t, bide.SessionUp, p.Session().State)
		require.Equal(t, bide.Confirmed, publish())

		broker.Block("memory")
		require.Equal(t, bide.SessionBlocked, p.Session().State)
		require.ErrorContains(t, p.Session().Err, "memory")
		require.Equal(t, bide.Refused, publish())
		broker.Block("")

		broker.Stop()
		require.Equal(t, bide.SessionDown, p.Session().State)
		require.Equal(t, bide.Refused, publish())
		<-time.After(2 * time.Second)
		require.Equal(t, 1, broker.Waiting(ledger), "delays go on")
		broker.Restart()
		<-time.After(time.Second)
		require.Equal(t, bide.Confirmed, publish())

		broker.Purge()
		<-time.After(2 * time.Second)
		require.Zero(t, broker.Waiting(ledger), "delayed messages are purged, too")
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestProxy(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	proxy := brokertest.NewProxy(t, server.Addr().String())
	conn, err := net.Dial("tcp", proxy.Addr())
	require.NoError(t, err)
	defer conn.Close()
	echo := func(within time.Duration) error {
		require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := conn.Read(make([]byte, 1))
		return err
	}
	require.NoError(t, echo(time.Second))
	proxy.Pause()
	require.ErrorIs(t, echo(50*time.Millisecond), os.ErrDeadlineExceeded)
	proxy.Resume()
	require.NoError(t, echo(time.Second), "the held byte comes")
	_, err = conn.Read(make([]byte, 1)) // and this one's own
	require.NoError(t, err)
	proxy.Cut()
	require.Error(t, echo(time.Second))
	proxy.Refuse(true)
	conn, err = net.Dial("tcp", proxy.Addr())
	require.NoError(t, err)
	require.Error(t, echo(time.Second))
}
