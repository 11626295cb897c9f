package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// validator is a section of a configuration.
type validator interface {
	// validate returns the section's faults and fills in what follows from
	// other fields.
	validate() []error
}

// load fills spec, a pointer to a struct of sections, from the environment and
// returns all faults joined.
func load(spec any) error {
	faults := process(spec)
	faults = append(faults, unknown()...)
	v := reflect.ValueOf(spec).Elem()
	for _, field := range v.Fields() {
		if section, ok := reflect.TypeAssert[validator](field.Addr()); ok {
			faults = append(faults, section.validate()...)
		}
	}
	return errors.Join(faults...)
}

// process parses every variable. envconfig stops at the first that does not
// parse and quotes its value; so each such variable is noted by name, hidden,
// and the rest parsed again.
func process(spec any) []error {
	var faults []error
	hidden := map[string]string{}
	defer func() {
		for key, value := range hidden {
			_ = os.Setenv(key, value)
		}
	}()
	for {
		err := envconfig.Process("", spec)
		var parse *envconfig.ParseError
		if !errors.As(err, &parse) {
			if err != nil {
				faults = append(faults, err)
			}
			return faults
		}
		value, set := os.LookupEnv(parse.KeyName)
		if !set {
			return append(faults, fmt.Errorf("%s: default does not parse as %s", parse.KeyName, parse.TypeName))
		}
		faults = append(faults, fmt.Errorf("%s=%q: want %s", parse.KeyName, value, wanted(parse.TypeName)))
		hidden[parse.KeyName] = value
		_ = os.Unsetenv(parse.KeyName)
	}
}

// wanted says what a value of the type looks like. Secrets are strings, which
// always parse; so a value quoted beside it is no secret.
func wanted(typeName string) string {
	switch typeName {
	case "time.Duration":
		return "a duration such as 250ms, 10s or 1h30m"
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	default:
		return "a value of type " + typeName
	}
}

// unknown finds variables that begin like ours and mean nothing: a misspelt
// name must not pass for the default.
func unknown() []error {
	names := known()
	var faults []error
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "BIDE_") && !strings.HasPrefix(name, "BIDE_TEST_") && !names[name] {
			faults = append(faults, fmt.Errorf("%s: no such variable; see --help", name))
		}
	}
	return faults
}

// secret resolves a value that may be given in a file. The file's name is not
// quoted: it may be the secret itself, put there by mistake.
func secret(name, value, file string) (string, error) {
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("BIDE_%s and BIDE_%s_FILE are both set: want one", name, name)
	}
	content, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	if err != nil {
		return "", fmt.Errorf("BIDE_%s_FILE: %w: want the path of a file that holds the secret", name, err)
	}
	return strings.TrimSpace(string(content)), nil
}
