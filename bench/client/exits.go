package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	containersPerPod = 10
	gateDir          = "/gate"
	gateName         = "open"
	// Long enough for a container that was started to have come to its gate.
	gateWait = 2 * time.Second
	// Readers that come while it is held open wait at it with the others.
	gateHeld     = 200 * time.Millisecond
	exitsWaitMax = 2 * time.Minute
)

// gatedConfig is of a container that ends, with code 0, once nobody holds the gate open for writing any more.
func (c *client) gatedConfig(number int, hostDir string) *cri.ContainerConfig {
	container := c.containerConfig()
	container.Metadata.Name = fmt.Sprintf("main-%d", number)
	container.LogPath = fmt.Sprintf("main-%d.log", number)
	container.Command = []string{"cat", filepath.Join(gateDir, gateName)}
	container.Mounts = []*cri.Mount{{HostPath: hostDir, ContainerPath: gateDir}}
	return container
}

// gatedPod runs a pod whose containers wait at the gate, and tells their ids.
func (c *client) gatedPod(ctx context.Context, number int, hostDir string) (string, []string, error) {
	config := c.podConfig(number)
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return "", nil, err
	}
	ran, err := c.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		return "", nil, err
	}
	var ids []string
	for i := range min(containersPerPod, c.count-number*containersPerPod) {
		made, err := c.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{
			PodSandboxId: ran.PodSandboxId, Config: c.gatedConfig(i, hostDir), SandboxConfig: config,
		})
		if err == nil {
			_, err = c.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId})
		}
		if err != nil {
			return ran.PodSandboxId, ids, err
		}
		ids = append(ids, made.ContainerId)
	}
	return ran.PodSandboxId, ids, nil
}

// openGate lets everybody go who waits at it, at once.
func openGate(path string) error {
	gate, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	time.Sleep(gateHeld)
	return gate.Close()
}

// finishedAt is what an event says of when a container ended, in nanoseconds since 1970; 0 where it says nothing.
func finishedAt(event *cri.ContainerEventResponse) int64 {
	for _, status := range event.ContainersStatuses {
		if status.Id == event.ContainerId {
			return status.FinishedAt
		}
	}
	return 0
}

// hearExits takes events until each of the containers has STOPPED: how long after its end, as its shim saw it, and after
// the gate's opening, is recorded.
func (c *client) hearExits(events cri.RuntimeService_GetContainerEventsClient, waiting map[string]bool, opened time.Time) error {
	for len(waiting) > 0 {
		event, err := events.Recv()
		if err != nil {
			return fmt.Errorf("%d of %d exits were told: %w", c.count-len(waiting), c.count, err)
		}
		heard := time.Now()
		if event.ContainerEventType != cri.ContainerEventType_CONTAINER_STOPPED_EVENT || !waiting[event.ContainerId] {
			continue
		}
		delete(waiting, event.ContainerId)
		c.rec.add("GateToEvent", heard.Sub(opened))
		if at := finishedAt(event); at > 0 {
			c.rec.add("ExitToEvent", heard.Sub(time.Unix(0, at)))
		} else {
			c.rec.fail("event", errors.New("it does not say when the container ended"))
		}
	}
	return nil
}

func (c *client) exits(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	hostDir, err := os.MkdirTemp("", "bench-gate-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(hostDir)
	gate := filepath.Join(hostDir, gateName)
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return result{}, err
	}
	pods := make([]string, (c.count+containersPerPod-1)/containersPerPod)
	ids := make([][]string, len(pods))
	defer func() { each(len(pods), c.parallel, func(i int) { c.down(ctx, pod{id: pods[i]}) }) }()
	each(len(pods), c.parallel, func(i int) {
		var err error
		if pods[i], ids[i], err = c.gatedPod(ctx, i, hostDir); err != nil {
			c.rec.fail("a pod whose containers end", err)
		}
	})
	waiting := map[string]bool{}
	for _, ofPod := range ids {
		for _, id := range ofPod {
			waiting[id] = true
		}
	}
	if len(waiting) < c.count {
		return c.rec.result(), nil
	}
	listening, cancel := context.WithTimeout(ctx, exitsWaitMax)
	defer cancel()
	events, err := c.runtime.GetContainerEvents(listening, &cri.GetEventsRequest{})
	if err != nil {
		return result{}, err
	}
	// A subscription is heard of by no answer of its own.
	time.Sleep(gateWait)
	if err := openGate(gate); err != nil {
		return result{}, err
	}
	if err := c.hearExits(events, waiting, time.Now()); err != nil {
		c.rec.fail("GetContainerEvents", err)
	}
	return c.rec.result(), nil
}
