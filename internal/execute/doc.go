// Package execute runs handlers inside the ledger's transactions: the worker's
// executor on PostgreSQL. It joins package outbox, which locks and finishes
// tasks, to package handler, which acts on them, and sorts errors by whose
// fault they are.
package execute
