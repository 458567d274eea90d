package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// How often a kubelet asks by itself, with its defaults: for what runs (its generic PLEG), whether the runtime is well,
// and for the figures of eviction and of whoever reads its summary.
const (
	relistEvery = time.Second
	statusEvery = 5 * time.Second
	statsEvery  = 10 * time.Second
)

// kubelet asks what a kubelet asks of a runtime all day, for -seconds, and runs -count probes by exec meanwhile, evenly.
func (c *client) kubelet(ctx context.Context) (result, error) {
	containers, err := c.filled(ctx)
	if err != nil {
		return result{}, err
	}
	length := time.Duration(c.seconds * float64(time.Second))
	asking, stopAsking := context.WithTimeout(ctx, length)
	defer stopAsking()
	duties := []duty{
		{relistEvery, c.relist},
		{statusEvery, c.askStatus},
		{statsEvery, c.askStats},
	}
	if c.count > 0 {
		var next atomic.Int64
		duties = append(duties, duty{length / time.Duration(c.count), func(ctx context.Context) {
			c.probe(ctx, containers[int(next.Add(1))%len(containers)].Id)
		}})
	}
	each(len(duties), len(duties), func(i int) { duties[i].keepDoing(asking, ctx) })
	return c.rec.result(), nil
}

type duty struct {
	every time.Duration
	do    func(context.Context)
}

// keepDoing does it again and again until asking ends. What has begun by then goes on to its end.
func (d duty) keepDoing(asking, ctx context.Context) {
	ticker := time.NewTicker(d.every)
	defer ticker.Stop()
	for {
		select {
		case <-asking.Done():
			return
		case <-ticker.C:
			d.do(ctx)
		}
	}
}

func (c *client) relist(ctx context.Context) {
	_ = c.rec.timed("ListPodSandbox", func() error { return c.listPodSandbox(ctx) })
	_ = c.rec.timed("ListContainers", func() error { return c.listContainers(ctx) })
}

func (c *client) askStatus(ctx context.Context) {
	_ = c.rec.timed("Status", func() error {
		_, err := c.runtime.Status(ctx, &cri.StatusRequest{})
		return err
	})
}

func (c *client) askStats(ctx context.Context) {
	c.relist(ctx)
	_ = c.rec.timed("ListContainerStats", func() error { return c.listContainerStats(ctx) })
	_ = c.rec.timed("ImageFsInfo", func() error {
		_, err := c.images.ImageFsInfo(ctx, &cri.ImageFsInfoRequest{})
		return err
	})
}

func (c *client) probe(ctx context.Context, containerID string) {
	_ = c.rec.timed("ExecSync", func() error {
		answer, err := c.runtime.ExecSync(ctx, &cri.ExecSyncRequest{
			ContainerId: containerID, Cmd: []string{"true"}, Timeout: 10,
		})
		if err == nil && answer.GetExitCode() != 0 {
			err = errors.New("the probe failed")
		}
		return err
	})
}
