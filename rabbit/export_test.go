package rabbit

// Unconfirmed counts the messages that the publisher has written and the
// broker has not answered for.
func Unconfirmed(p *Publisher) int {
	lanes := p.current.Load()
	if lanes == nil {
		return 0
	}
	n := 0
	for _, l := range lanes.lane {
		n += len(l.slots)
	}
	return n
}
