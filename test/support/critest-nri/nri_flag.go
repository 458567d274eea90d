// The flag that critest has for these specs since the release that setup builds: package framework has no room for it there.
package validate

import "flag"

var nriSocketPath string

func init() {
	flag.StringVar(&nriSocketPath, "nri-socket", "", "Path to the NRI socket. NRI tests are skipped when not set.")
}
