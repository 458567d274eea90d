package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (c *client) lifecycle(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	started := time.Now()
	each(c.count, c.parallel, func(i int) {
		made, _ := c.up(ctx, i)
		c.down(ctx, made)
	})
	seconds := time.Since(started).Seconds()
	measured := c.rec.result()
	measured.PerSecond = map[string]float64{"pods": float64(c.count) / seconds}
	return measured, nil
}

func (c *client) containers(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	config := c.podConfig(0)
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return result{}, err
	}
	ran, err := c.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		return result{}, err
	}
	defer c.down(ctx, pod{id: ran.PodSandboxId})
	var id string
	create := func(name string) func() error {
		container := c.containerConfig()
		container.Metadata.Name = name
		return func() error {
			answer, err := c.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{
				PodSandboxId: ran.PodSandboxId, Config: container, SandboxConfig: config,
			})
			id = answer.GetContainerId()
			return err
		}
	}
	// It stays, and with it the shim of a pod without a pause task, which would be started and ended for each otherwise.
	if err := c.rec.timed("FirstContainer", create("first")); err != nil {
		return c.rec.result(), nil
	}
	for i := range c.count {
		if err := c.rec.timed("CreateContainer", create(fmt.Sprintf("main-%d", i))); err != nil {
			break
		}
		c.removeContainer(ctx, id)
	}
	return c.rec.result(), nil
}

func (c *client) exec(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	made, err := c.up(ctx, 0)
	defer c.down(ctx, made)
	if err != nil {
		return result{}, err
	}
	const said = "hi"
	for range c.count {
		_ = c.rec.timed("ExecSync", func() error {
			answer, err := c.runtime.ExecSync(ctx, &cri.ExecSyncRequest{
				ContainerId: made.containerID, Cmd: []string{"echo", said}, Timeout: 10,
			})
			if err == nil && strings.TrimSpace(string(answer.GetStdout())) != said {
				err = fmt.Errorf("it answered %q with exit code %d", answer.GetStdout(), answer.GetExitCode())
			}
			return err
		})
	}
	measured := c.rec.result()
	return result{SamplesMs: map[string][]float64{"ExecSync": measured.SamplesMs["ExecSync"]}, Errors: measured.Errors}, nil
}

func (c *client) fill(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	var mu sync.Mutex
	var ids []string
	each(c.count, c.parallel, func(i int) {
		if made, err := c.up(ctx, i); err == nil {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, made.containerID)
		}
	})
	measured := c.rec.result()
	measured.ContainerIDs = ids
	return measured, nil
}

// dense is fill while somebody asks for all containers.
func (c *client) dense(ctx context.Context) (result, error) {
	stopAsking := c.keepListing(ctx)
	defer stopAsking()
	return c.fill(ctx)
}

// again does what a kubelet does after a reboot: it stops every pod that the runtime knows of, and makes another one.
func (c *client) again(ctx context.Context) (result, error) {
	left, err := c.ownPods(ctx)
	if err != nil {
		return result{}, err
	}
	each(len(left), c.parallel, func(i int) {
		if err := c.stop(ctx, left[i]); err == nil {
			_, _ = c.up(ctx, i)
		}
	})
	return c.rec.result(), nil
}

func (c *client) clean(ctx context.Context) (result, error) {
	left, err := c.ownPods(ctx)
	if err != nil {
		return result{}, err
	}
	each(len(left), c.parallel, func(i int) { c.down(ctx, left[i]) })
	return result{Errors: c.rec.result().Errors}, nil
}

// rate makes the same call for a while from all callers, each one after the other, and gives the calls per second.
// A caller that fails stops: what a runtime answers quickly because it refuses is not counted as fast.
func (c *client) rate(name string, call func() error) float64 {
	var calls atomic.Int64
	started := time.Now()
	end := started.Add(time.Duration(c.seconds * float64(time.Second)))
	each(c.parallel, c.parallel, func(int) {
		for time.Now().Before(end) {
			if err := call(); err != nil {
				c.rec.fail(name, err)
				return
			}
			calls.Add(1)
		}
	})
	return float64(calls.Load()) / time.Since(started).Seconds()
}

// filled gives the containers that fill left, for commands that ask for them.
func (c *client) filled(ctx context.Context) ([]*cri.Container, error) {
	listed, err := c.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err == nil && len(listed.Containers) == 0 {
		err = errors.New("there are no containers to ask for: fill first")
	}
	return listed.GetContainers(), err
}

func (c *client) listContainers(ctx context.Context) error {
	_, err := c.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	return err
}

func (c *client) listPodSandbox(ctx context.Context) error {
	_, err := c.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	return err
}

func (c *client) listContainerStats(ctx context.Context) error {
	_, err := c.runtime.ListContainerStats(ctx, &cri.ListContainerStatsRequest{})
	return err
}

func (c *client) rates(ctx context.Context) (result, error) {
	containers, err := c.filled(ctx)
	if err != nil {
		return result{}, err
	}
	var next atomic.Int64
	calls := []struct {
		name string
		call func() error
	}{
		{"Version", func() error {
			_, err := c.runtime.Version(ctx, &cri.VersionRequest{})
			return err
		}},
		{"ListContainers", func() error { return c.listContainers(ctx) }},
		{"ListPodSandbox", func() error { return c.listPodSandbox(ctx) }},
		{"ContainerStatus", func() error {
			container := containers[int(next.Add(1))%len(containers)]
			_, err := c.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: container.Id})
			return err
		}},
		{"ListContainerStats", func() error { return c.listContainerStats(ctx) }},
	}
	perSecond := map[string]float64{}
	for _, measured := range calls {
		perSecond[measured.name] = c.rate(measured.name, measured.call)
	}
	return result{PerSecond: perSecond, Errors: c.rec.result().Errors}, nil
}
