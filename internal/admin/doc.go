// Package admin is the listener that operators and orchestrators ask: is the
// process alive, is it ready, what does it measure. It gives nothing away: no
// names of tasks, no addresses, no settings, and it takes no commands.
package admin
