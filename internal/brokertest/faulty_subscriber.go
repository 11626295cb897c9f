package brokertest

import (
	"context"
	"slices"
	"time"

	"github.com/bide-mq/bide"
)

// DeliveryFault is what goes wrong with one delivery.
type DeliveryFault struct {
	// Copies is how many more times it is delivered.
	Copies int
	// Delay postpones it; different delays change the order.
	Delay time.Duration
	// Garble damages the body.
	Garble bool
	// LoseAck keeps the acknowledgement from the broker.
	LoseAck bool
}

// FaultySubscriber puts faults between a driver and a loop.
type FaultySubscriber struct {
	bide.Subscriber
	// Fault says what happens to a delivery. It is called from any goroutine.
	Fault func(bide.Delivery) DeliveryFault
}

// Subscribe passes deliveries on, with their faults.
func (s *FaultySubscriber) Subscribe(ctx context.Context, handle func(bide.Delivery)) error {
	return s.Subscriber.Subscribe(ctx, func(d bide.Delivery) {
		fault := s.Fault(d)
		if fault.Delay == 0 {
			fault.deliver(d, handle)
			return
		}
		time.AfterFunc(fault.Delay, func() { fault.deliver(d, handle) })
	})
}

// deliver calls handle for the delivery and its copies. Only the last one's
// acknowledgement counts, so that a loop which acknowledges the first copy
// still gets the others.
func (f DeliveryFault) deliver(d bide.Delivery, handle func(bide.Delivery)) {
	ack := d.Ack
	if f.LoseAck {
		ack = func() {}
	}
	body := d.Body
	if f.Garble {
		body = slices.Clone(body)
		slices.Reverse(body)
	}
	for range f.Copies {
		handle(bide.NewDelivery(body, d.Redelivered, func() {}))
	}
	handle(bide.NewDelivery(body, d.Redelivered, ack))
}
