package remoting

// Waiting is the number of calls without an answer.
func (c *Conn) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// ParseRoute and ParseCluster read what name servers answer.
var (
	ParseRoute   = parseRoute
	ParseCluster = parseCluster
)
