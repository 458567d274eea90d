package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	servedPort   = "8080"
	lineOfStream = 1024
	sessionMax   = 5 * time.Minute
)

// zeros is as much standard input as asked for.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// session asks for an exec and runs it to its end, as kubectl does behind the API server.
func (c *client) session(ctx context.Context, id string, command []string, in io.Reader, out io.Writer) error {
	answer, err := c.runtime.Exec(ctx, &cri.ExecRequest{
		ContainerId: id, Cmd: command, Stdin: in != nil, Stdout: true, Stderr: true,
	})
	if err != nil {
		return err
	}
	target, err := url.Parse(answer.Url)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, target)
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: io.Discard})
}

// forwarded runs work with the address of a listener whose connections go to the pod's port.
func (c *client) forwarded(ctx context.Context, podID string, work func(address string) error) error {
	answer, err := c.runtime.PortForward(ctx, &cri.PortForwardRequest{PodSandboxId: podID, Port: []int32{8080}})
	if err != nil {
		return err
	}
	target, err := url.Parse(answer.Url)
	if err != nil {
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		return err
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + servedPort}, stop, ready, io.Discard, os.Stderr)
	if err != nil {
		return err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	defer func() {
		close(stop)
		<-ended
	}()
	return work(fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
}

// fetch reads a whole file over a connection of its own.
func fetch(address, name string, want int64) error {
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/" + name)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.Copy(io.Discard, answer.Body)
	if err == nil && got != want {
		err = fmt.Errorf("%d of %d bytes came", got, want)
	}
	return err
}

// streams has -count sessions and forwarded connections, one after the other, and then moves -bytes each way.
func (c *client) streams(ctx context.Context) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, sessionMax)
	defer cancel()
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp(c.logDir, "streams")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	lines, err := writeLines(filepath.Join(dir, "lines"), lineOfStream, c.bytes)
	if err != nil {
		return result{}, err
	}
	size := int64(lines) * lineOfStream
	const line = "one line\n"
	if err := os.WriteFile(filepath.Join(dir, "line"), []byte(line), 0o644); err != nil {
		return result{}, err
	}
	config := c.containerConfig()
	config.Command = []string{"httpd", "-f", "-p", servedPort, "-h", linesDir}
	config.Mounts = []*cri.Mount{{ContainerPath: linesDir, HostPath: dir, Readonly: true}}
	made, err := c.create(ctx, 0, config)
	defer c.down(ctx, made)
	if err == nil {
		_, err = c.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.containerID})
	}
	if err != nil {
		return result{}, err
	}

	for range c.count {
		c.echo(ctx, made.containerID)
	}
	perSecond := map[string]float64{}
	moved := func(name string, move func() error) {
		started := time.Now()
		if err := move(); err != nil {
			c.rec.fail(name, err)
			return
		}
		perSecond[name] = float64(size) / 1e6 / time.Since(started).Seconds()
	}
	moved("execOut", func() error {
		var out counter
		err := c.session(ctx, made.containerID, []string{"cat", linesDir + "/lines"}, nil, &out)
		if err == nil && out.n != size {
			err = fmt.Errorf("%d of %d bytes came", out.n, size)
		}
		return err
	})
	moved("execIn", func() error {
		var out bytes.Buffer
		err := c.session(ctx, made.containerID, []string{"wc", "-c"}, zeros(size), &out)
		if err == nil && strings.TrimSpace(out.String()) != fmt.Sprint(size) {
			err = fmt.Errorf("%s of %d bytes came", strings.TrimSpace(out.String()), size)
		}
		return err
	})
	err = c.forwarded(ctx, made.id, func(address string) error {
		for range c.count {
			_ = c.rec.timed("ForwardedGet", func() error { return fetch(address, "line", int64(len(line))) })
		}
		moved("forward", func() error { return fetch(address, "lines", size) })
		return nil
	})
	if err != nil {
		c.rec.fail("PortForward", err)
	}
	measured := c.rec.result()
	samples := map[string][]float64{}
	for _, name := range []string{"ExecSession", "ForwardedGet"} {
		samples[name] = measured.SamplesMs[name]
	}
	return result{PerSecond: perSecond, SamplesMs: samples, Errors: measured.Errors}, nil
}
