// A plugin on containerd/nri's stub that plays the part that a script says. The script is JSON: of a launched plugin
// its configuration, of one that connects the argument -script. Every request is a line of JSON on standard output and in
// the script's log file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
)

func main() {
	name := flag.String("name", "", "name to register with; of a launched plugin its file's")
	index := flag.String("idx", "", "index to register with")
	socket := flag.String("socket", "", "socket to connect to")
	script := flag.String("script", "", "what to do, as JSON")
	reconnect := flag.Bool("reconnect", false, "connect again when the connection is lost")
	flag.Parse()
	for {
		err := run(*name, *index, *socket, *script)
		if !*reconnect {
			fmt.Fprintln(os.Stderr, "ended:", err)
			os.Exit(1)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func run(name, index, socket, script string) error {
	p := &plugin{}
	if script != "" {
		if err := p.read(script); err != nil {
			return err
		}
	}
	options := []stub.Option{stub.WithTTRPCOptions(
		[]ttrpc.ClientOpts{ttrpc.WithUnaryClientInterceptor(p.withEvictionsAsked)},
		[]ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(p.withEvictions)},
	)}
	if name != "" {
		options = append(options, stub.WithPluginName(name), stub.WithPluginIdx(index), stub.WithSocketPath(socket))
	}
	if policy := p.script.Policy; policy != nil {
		options = append(options, stub.WithFailurePolicy(policy))
	}
	s, err := stub.New(p, options...)
	if err != nil {
		return err
	}
	p.stub = s
	if err := s.Run(context.Background()); err != nil {
		return err
	}
	return errors.New("the connection was closed")
}

func (p *plugin) Configure(_ context.Context, config, runtime, version string) (api.EventMask, error) {
	if config != "" {
		if err := p.read(config); err != nil {
			return 0, err
		}
	}
	p.log(entry{Hook: "Configure", Runtime: runtime, Version: version, Config: config})
	p.act("Configure", "")
	return p.events()
}
