package service

import (
	"cmp"
	"runtime/debug"
)

// version is for the linker, where a build cannot tell its version itself:
// -ldflags "-X github.com/bide-mq/bide/internal/service.version=v1.2.3".
var version string

// Version is what the linker was told; else this module's version, as the go
// command recorded it when it installed the program, built it from a checkout,
// or built another program with Bide in it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "unknown")
	}
	return versionIn(info)
}

func versionIn(info *debug.BuildInfo) string {
	recorded := info.Main
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/bide-mq/bide" {
			recorded = *dependency
		}
	}
	return cmp.Or(version, recorded.Version, "unknown")
}
