package outbox

// Statement returns one of the embedded statements, rendered for the schema.
func (s Schema) Statement(name string) (string, error) {
	q, err := s.queries()
	return q[name], err
}
