package bide

import "context"

// Subscriber receives what a broker delivers.
type Subscriber interface {
	// Subscribe calls handle for each delivery, across as many sessions as it
	// takes, until ctx ends. handle is called from several goroutines at once.
	// It must not block for long and must lead to one Ack per delivery, from
	// any goroutine, however late.
	//
	// When ctx ends, Subscribe stops asking for messages, passes on the ones
	// that had already arrived, waits until every delivery of the living
	// session is acknowledged or the driver's drain timeout is over, and
	// returns nil. It returns an error, a [*Fault], only where no retry mends
	// it, such as for topology that exists with other arguments.
	Subscribe(ctx context.Context, handle func(Delivery)) error
	// Session says whether deliveries can be expected to arrive now.
	Session() Session
}

// Delivery is one arrival of a message. Body is whatever arrived: use
// [ParseMessage] on it.
type Delivery struct {
	Body []byte
	// Redelivered says that the broker has delivered this message before, to
	// a consumer that went away without acknowledging it.
	Redelivered bool

	ack func()
}

// NewDelivery is for drivers. ack is called at most once per call of
// [Delivery.Ack] and must tolerate a session that has ended.
func NewDelivery(body []byte, redelivered bool, ack func()) Delivery {
	return Delivery{Body: body, Redelivered: redelivered, ack: ack}
}

// Ack tells the broker to forget the message. When the session that delivered
// it has ended, Ack does nothing: the broker will deliver the message again.
func (d Delivery) Ack() { d.ack() }
