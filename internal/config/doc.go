// Package config reads the services' settings from the environment, at the
// edge and nowhere else. Every variable begins with BIDE_. All faults are
// reported at once, none quotes a secret, and each secret may be given as a
// file instead, by the same variable with _FILE at its end.
package config
