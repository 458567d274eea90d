package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The label by which clean finds the pods of this client.
var ownLabel = map[string]string{"bench": "client"}

const logName = "main.log"

type pod struct {
	id          string
	containerID string
}

// each calls work for 0 to count-1, in order, at most parallel at a time.
func each(count, parallel int, work func(i int)) {
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range numbers {
				work(i)
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

func (c *client) podConfig(i int) *cri.PodSandboxConfig {
	name := fmt.Sprintf("bench-%d-%d", os.Getpid(), i)
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: "bench", Uid: name},
		Hostname:     name,
		LogDirectory: filepath.Join(c.logDir, name),
		Labels:       ownLabel,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: c.cgroupParent,
			SecurityContext: &cri.LinuxSandboxSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER},
			},
		},
	}
}

// A kubelet gives every container labels and a handful of variables of the cluster's services.
func (c *client) containerConfig() *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"},
		Image:    &cri.ImageSpec{Image: c.image},
		Command:  []string{"sleep", "1000000"},
		LogPath:  logName,
		Labels:   ownLabel,
		Envs: []*cri.KeyValue{
			{Key: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"},
			{Key: "KUBERNETES_SERVICE_PORT", Value: "443"},
		},
		Linux: &cri.LinuxContainerConfig{},
	}
}

func (c *client) runPodSandbox(ctx context.Context, config *cri.PodSandboxConfig) (id string, err error) {
	err = c.rec.timed("RunPodSandbox", func() error {
		answer, err := c.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
		id = answer.GetPodSandboxId()
		return err
	})
	return id, err
}

func (c *client) createContainer(ctx context.Context, sandbox string, config *cri.PodSandboxConfig, container *cri.ContainerConfig) (id string, err error) {
	err = c.rec.timed("CreateContainer", func() error {
		answer, err := c.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{
			PodSandboxId: sandbox, Config: container, SandboxConfig: config,
		})
		id = answer.GetContainerId()
		return err
	})
	return id, err
}

func (c *client) startContainer(ctx context.Context, id string) error {
	return c.rec.timed("StartContainer", func() error {
		_, err := c.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: id})
		return err
	})
}

func (c *client) stopContainer(ctx context.Context, id string) {
	_ = c.rec.timed("StopContainer", func() error {
		_, err := c.runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id})
		return err
	})
}

func (c *client) removeContainer(ctx context.Context, id string) {
	_ = c.rec.timed("RemoveContainer", func() error {
		_, err := c.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: id})
		return err
	})
}

func (c *client) pull(ctx context.Context) error {
	_, err := c.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: c.image}})
	return err
}

// create runs a pod with one container that is not started. What had been made when a call failed is in the pod, for
// down.
func (c *client) create(ctx context.Context, i int, container *cri.ContainerConfig) (pod, error) {
	var made pod
	config := c.podConfig(i)
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return made, err
	}
	var err error
	if made.id, err = c.runPodSandbox(ctx, config); err != nil {
		return made, err
	}
	made.containerID, err = c.createContainer(ctx, made.id, config, container)
	return made, err
}

// up runs a pod with one started container.
func (c *client) up(ctx context.Context, i int) (pod, error) {
	started := time.Now()
	made, err := c.create(ctx, i, c.containerConfig())
	if err != nil {
		return made, err
	}
	if err = c.startContainer(ctx, made.containerID); err == nil {
		c.rec.add("PodReady", time.Since(started))
	}
	return made, err
}

// ownPods are all pods that this client made and did not take away, as far as the runtime knows of them.
func (c *client) ownPods(ctx context.Context) ([]pod, error) {
	answer, err := c.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{
		Filter: &cri.PodSandboxFilter{LabelSelector: ownLabel},
	})
	var pods []pod
	for _, sandbox := range answer.GetItems() {
		pods = append(pods, pod{id: sandbox.Id})
	}
	return pods, err
}

func (c *client) stop(ctx context.Context, made pod) error {
	return c.rec.timed("StopPodSandbox", func() error {
		_, err := c.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: made.id})
		return err
	})
}

// down takes a pod away, as far as the runtime will: failures are recorded, and what is left is clean's.
func (c *client) down(ctx context.Context, made pod) {
	if made.containerID != "" {
		started := time.Now()
		c.stopContainer(ctx, made.containerID)
		c.removeContainer(ctx, made.containerID)
		c.rec.add("StopAndRemove", time.Since(started))
	}
	if made.id == "" {
		return
	}
	_ = c.stop(ctx, made)
	c.remove(ctx, made)
}

func (c *client) remove(ctx context.Context, made pod) {
	_ = c.rec.timed("RemovePodSandbox", func() error {
		_, err := c.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: made.id})
		return err
	})
}
