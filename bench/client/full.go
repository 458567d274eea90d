package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	serviceVariables = 40
	// As long as kubectl writes what was applied last.
	appliedBytes = 4096
	initEndMax   = 30 * time.Second
	// A kubelet hears of it by an event; this is short beside a container's start.
	initAskEvery = 5 * time.Millisecond
	userOfPod    = 1000
)

// A kubelet gives each volume a directory of its own on the host.
var volumes = []struct {
	name     string
	path     string
	readonly bool
}{
	{"token", "/var/run/secrets/kubernetes.io/serviceaccount", true},
	{"config", "/etc/app", true},
	{"secret", "/etc/app-secret", true},
	{"certificates", "/etc/app-certificates", true},
	{"cache", "/var/cache/app", false},
	{"scratch", "/scratch", false},
	{"data", "/data", false},
}

// What a kubelet has runtimes hide unless a pod wants all of /proc.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

var defaultSeccomp = &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}

// fullPodConfig is a pod's as a kubelet makes it of a Deployment's pod.
func (c *client) fullPodConfig(i int) *cri.PodSandboxConfig {
	config := c.podConfig(i)
	config.DnsConfig = &cri.DNSConfig{
		Servers:  []string{"10.96.0.10"},
		Searches: []string{"bench.svc.cluster.local", "svc.cluster.local", "cluster.local"},
		Options:  []string{"ndots:5"},
	}
	config.Labels = map[string]string{
		"app.kubernetes.io/name": "bench", "app.kubernetes.io/instance": "bench", "app.kubernetes.io/version": "1.2.3",
		"pod-template-hash": "5d4f8c7b9", "io.kubernetes.pod.name": config.Metadata.Name,
		"io.kubernetes.pod.namespace": config.Metadata.Namespace, "io.kubernetes.pod.uid": config.Metadata.Uid,
	}
	for name, value := range ownLabel {
		config.Labels[name] = value
	}
	config.Annotations = map[string]string{
		"kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z", "kubernetes.io/config.source": "api",
		"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", appliedBytes),
	}
	security := config.Linux.SecurityContext
	security.Seccomp = defaultSeccomp
	security.SupplementalGroups = []int64{2000}
	security.NamespaceOptions = &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}
	config.Linux.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	config.Linux.Resources = &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 100000, CpuShares: 256, MemoryLimitInBytes: 256 << 20}
	return config
}

// fullContainerConfig is one of that pod's containers, whose volumes are in podDir.
func (c *client) fullContainerConfig(name, podDir string, command []string) *cri.ContainerConfig {
	container := c.containerConfig()
	container.Metadata.Name = name
	container.Command = command
	container.LogPath = filepath.Join(name, "0.log")
	container.Labels = map[string]string{"io.kubernetes.container.name": name, "io.kubernetes.pod.namespace": "bench"}
	for label, value := range ownLabel {
		container.Labels[label] = value
	}
	container.Annotations = map[string]string{
		"io.kubernetes.container.hash": "5f3a8c2d", "io.kubernetes.container.restartCount": "0",
		"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
		"io.kubernetes.container.terminationMessagePolicy": "File", "io.kubernetes.pod.terminationGracePeriod": "30",
	}
	for i := range serviceVariables {
		container.Envs = append(container.Envs, &cri.KeyValue{
			Key: fmt.Sprintf("SERVICE_%d_PORT_80_TCP_ADDR", i), Value: fmt.Sprintf("10.96.0.%d", i),
		})
	}
	for _, volume := range volumes {
		container.Mounts = append(container.Mounts, &cri.Mount{
			HostPath: filepath.Join(podDir, volume.name), ContainerPath: volume.path, Readonly: volume.readonly,
		})
	}
	for name, path := range map[string]string{"etc-hosts": "/etc/hosts", "termination-log": "/dev/termination-log"} {
		container.Mounts = append(container.Mounts, &cri.Mount{HostPath: filepath.Join(podDir, name), ContainerPath: path})
	}
	container.Linux = &cri.LinuxContainerConfig{
		Resources: &cri.LinuxContainerResources{
			CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 128, MemoryLimitInBytes: 128 << 20, OomScoreAdj: 985,
		},
		SecurityContext: &cri.LinuxContainerSecurityContext{
			NamespaceOptions:   &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER},
			Capabilities:       &cri.Capability{DropCapabilities: []string{"ALL"}},
			RunAsUser:          &cri.Int64Value{Value: userOfPod},
			SupplementalGroups: []int64{2000},
			ReadonlyRootfs:     true,
			NoNewPrivs:         true,
			Seccomp:            defaultSeccomp,
			MaskedPaths:        maskedPaths,
			ReadonlyPaths:      readonlyPaths,
		},
	}
	return container
}

// makePodDir makes what a kubelet has on the host before it asks for a container.
func makePodDir(dir string) error {
	for _, volume := range volumes {
		if err := os.MkdirAll(filepath.Join(dir, volume.name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"etc-hosts", "termination-log"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// run makes a container and starts it.
func (c *client) run(ctx context.Context, sandbox string, config *cri.PodSandboxConfig, container *cri.ContainerConfig) (string, error) {
	logs := filepath.Join(config.LogDirectory, filepath.Dir(container.LogPath))
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return "", err
	}
	id, err := c.createContainer(ctx, sandbox, config, container)
	if err == nil {
		err = c.startContainer(ctx, id)
	}
	return id, err
}

// ended waits until a container has EXITED with code 0.
func (c *client) ended(ctx context.Context, id string) error {
	for deadline := time.Now().Add(initEndMax); time.Now().Before(deadline); time.Sleep(initAskEvery) {
		answer, err := c.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return err
		}
		if status := answer.Status; status.State == cri.ContainerState_CONTAINER_EXITED {
			if status.ExitCode != 0 {
				return fmt.Errorf("it ended with code %d: %s", status.ExitCode, status.Message)
			}
			return nil
		}
	}
	return errors.New("it does not end")
}

// upFull runs a pod with a container that prepares it and two that stay; ids are of those that were made.
func (c *client) upFull(ctx context.Context, i int, podDir string) (sandbox string, ids []string, err error) {
	config := c.fullPodConfig(i)
	if err = makePodDir(podDir); err == nil {
		err = os.MkdirAll(config.LogDirectory, 0o755)
	}
	if err != nil {
		return "", nil, err
	}
	started := time.Now()
	if sandbox, err = c.runPodSandbox(ctx, config); err != nil {
		return sandbox, nil, err
	}
	const prepare = "prepare"
	for _, name := range []string{prepare, "app", "sidecar"} {
		command := []string{"sleep", "1000000"}
		if name == prepare {
			command = []string{"true"}
		}
		id, err := c.run(ctx, sandbox, config, c.fullContainerConfig(name, podDir, command))
		if id != "" {
			ids = append(ids, id)
		}
		if err == nil && name == prepare {
			err = c.ended(ctx, id)
		}
		if err != nil {
			return sandbox, ids, err
		}
	}
	c.rec.add("FullPodReady", time.Since(started))
	return sandbox, ids, nil
}

// downFull takes it away as a kubelet does: all containers are stopped at once.
func (c *client) downFull(ctx context.Context, sandbox string, ids []string) {
	started := time.Now()
	each(len(ids), max(len(ids), 1), func(i int) { c.stopContainer(ctx, ids[i]) })
	_ = c.stop(ctx, pod{id: sandbox})
	for _, id := range ids {
		c.removeContainer(ctx, id)
	}
	c.remove(ctx, pod{id: sandbox})
	c.rec.add("FullPodGone", time.Since(started))
}

// full runs -count pods as a kubelet makes them, -parallel at a time, and takes each away again.
func (c *client) full(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "bench-volumes-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	started := time.Now()
	each(c.count, c.parallel, func(i int) {
		sandbox, ids, err := c.upFull(ctx, i, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			c.rec.fail("a pod as a kubelet makes it", err)
		}
		if sandbox != "" {
			c.downFull(ctx, sandbox, ids)
		}
	})
	seconds := time.Since(started).Seconds()
	measured := c.rec.result()
	measured.PerSecond = map[string]float64{"pods": float64(c.count) / seconds}
	return measured, nil
}
