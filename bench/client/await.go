package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	awaitTimeout = 2 * time.Minute
	// Short against what is measured, and long enough not to take the processor from the runtime that starts.
	betweenTries = time.Millisecond
)

// await waits for a runtime that is about to start. It first tries plain connections, which cost next to nothing while
// there is nobody to answer; then it asks again as long as the runtime is not ready to answer.
func await(ctx context.Context, o options) (result, error) {
	ids, err := readIDs(o.idsFile)
	if err != nil {
		return result{}, err
	}
	fmt.Println("ready")
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	if err := untilListening(ctx, o.socket); err != nil {
		return result{}, err
	}
	c, conn, err := connect(o)
	if err != nil {
		return result{}, err
	}
	defer conn.Close()
	for {
		answer, err := c.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
		answeredAt := time.Now()
		missing := len(ids) - countKnown(ids, answer.GetContainers())
		if err == nil && missing == 0 {
			running := 0
			for _, container := range answer.Containers {
				if container.State == cri.ContainerState_CONTAINER_RUNNING {
					running++
				}
			}
			return result{AnsweredAtMs: float64(answeredAt.UnixMicro()) / 1000, Running: running}, nil
		}
		if ctx.Err() != nil {
			return result{}, fmt.Errorf("after %v ListContainers lacks %d of %d ids (%v)", awaitTimeout, missing, len(ids), err)
		}
		time.Sleep(betweenTries)
	}
}

func readIDs(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ids := map[string]bool{}
	for _, id := range list {
		ids[id] = true
	}
	return ids, nil
}

func countKnown(ids map[string]bool, containers []*cri.Container) int {
	known := 0
	for _, container := range containers {
		if ids[container.Id] {
			known++
		}
	}
	return known
}

func untilListening(ctx context.Context, socket string) error {
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("nothing listens on %s after %v: %w", socket, awaitTimeout, err)
		}
		time.Sleep(betweenTries)
	}
}
