// Command streaming-client is what a user of exec, attach and port-forward has on the other end: the executors and the
// port forwarder of client-go, against the URL that a runtime's streaming server gave out.
//
//	streaming-client exec [flags] URL      relays its own stdin, stdout and stderr; tells the ending on descriptor 3
//	streaming-client forward [flags] URL PORT   listens and says where on stdout; until its stdin ends
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	clientexec "k8s.io/client-go/util/exec"
)

// ending is what the client learned when the session was over.
type ending struct {
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error"`
}

// sizes hands out the terminal sizes of a flag, then none.
type sizes struct{ left []remotecommand.TerminalSize }

func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(s.left) == 0 {
		return nil
	}
	next := s.left[0]
	s.left = s.left[1:]
	return &next
}

func parseSizes(text string) (*sizes, error) {
	parsed := &sizes{}
	for _, part := range strings.Split(text, ",") {
		var size remotecommand.TerminalSize
		if _, err := fmt.Sscanf(part, "%dx%d", &size.Width, &size.Height); err != nil {
			return nil, fmt.Errorf("size %q: %w", part, err)
		}
		parsed.left = append(parsed.left, size)
	}
	return parsed, nil
}

func executor(config *rest.Config, transport, address string, protocols []string) (remotecommand.Executor, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if transport == "websocket" {
		if len(protocols) == 0 {
			return remotecommand.NewWebSocketExecutor(config, http.MethodGet, address)
		}
		return remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, address, protocols...)
	}
	if len(protocols) == 0 {
		return remotecommand.NewSPDYExecutor(config, http.MethodPost, target)
	}
	wrapper, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForProtocols(wrapper, upgrader, http.MethodPost, target, protocols...)
}

func exec(arguments []string) error {
	flags := flag.NewFlagSet("exec", flag.ExitOnError)
	transport := flags.String("transport", "spdy", "spdy or websocket")
	protocols := flags.String("protocols", "", "subprotocols to offer, with commas; the client's own by default")
	stdin := flags.Bool("stdin", false, "send stdin")
	stdout := flags.Bool("stdout", false, "receive stdout")
	stderr := flags.Bool("stderr", false, "receive stderr")
	tty := flags.Bool("tty", false, "with a terminal")
	resize := flags.String("resize", "", "sizes of the terminal: 80x24,100x30")
	insecure := flags.Bool("insecure", false, "trust any certificate")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var offered []string
	if *protocols != "" {
		offered = strings.Split(*protocols, ",")
	}
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: *insecure}}
	executor, err := executor(config, *transport, flags.Arg(0), offered)
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Tty: *tty}
	if *stdin {
		options.Stdin = os.Stdin
	}
	if *stdout {
		options.Stdout = os.Stdout
	}
	if *stderr {
		options.Stderr = os.Stderr
	}
	if *resize != "" {
		if options.TerminalSizeQueue, err = parseSizes(*resize); err != nil {
			return err
		}
	}
	return executor.StreamWithContext(context.Background(), options)
}

func dialer(transport, address string) (httpstream.Dialer, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if transport == "websocket" {
		return portforward.NewSPDYOverWebsocketDialer(target, config)
	}
	wrapper, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: wrapper}, http.MethodPost, target), nil
}

func forward(arguments []string) error {
	flags := flag.NewFlagSet("forward", flag.ExitOnError)
	transport := flags.String("transport", "spdy", "spdy or websocket")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	dialer, err := dialer(*transport, flags.Arg(0))
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	ports := []string{"0:" + flags.Arg(1)}
	addresses := []string{"127.0.0.1"}
	forwarder, err := portforward.NewOnAddresses(dialer, addresses, ports, stop, make(chan struct{}), os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("exec or forward?")
	}
	switch os.Args[1] {
	case "exec":
		return exec(os.Args[2:])
	case "forward":
		return forward(os.Args[2:])
	default:
		return fmt.Errorf("exec or forward, not %q", os.Args[1])
	}
}

func main() {
	var told ending
	if err := run(); err != nil {
		told.Error = err.Error()
		var exit clientexec.CodeExitError
		if errors.As(err, &exit) {
			told.ExitCode = exit.Code
		}
	}
	if err := json.NewEncoder(os.NewFile(3, "ending")).Encode(told); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
