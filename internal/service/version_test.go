package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Makefile and the Dockerfile tell the linker, in words of their own, where
// to write the version.
func TestBuildsCarryTheVersionTheyWereGiven(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Makefile", "Dockerfile"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../..", name))
			require.NoError(t, err)
			variable := regexp.MustCompile(`-X (\S+)=`).FindStringSubmatch(string(text))
			require.NotNil(t, variable)
			program := filepath.Join(t.TempDir(), "consumer")
			output, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X "+variable[1]+"=v9.8.7", "-o", program, "../../cmd/consumer").CombinedOutput()
			require.NoError(t, err, string(output))
			output, err = exec.CommandContext(t.Context(), program, "--version").Output()
			require.NoError(t, err)
			require.Equal(t, "consumer v9.8.7\n", string(output))
		})
	}
}

func TestVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":  {Main: debug.Module{Path: "github.com/bide-mq/bide", Version: "v1.2.3"}},
		"v1.2.4":  {Main: debug.Module{Path: "example.com/shop", Version: "v7.0.0"}, Deps: []*debug.Module{{Path: "github.com/bide-mq/bide", Version: "v1.2.4"}}},
		"unknown": {},
	} {
		require.Equal(t, want, versionIn(&info))
	}
}
