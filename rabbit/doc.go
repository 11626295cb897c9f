// Package rabbit is the RabbitMQ driver.
package rabbit
