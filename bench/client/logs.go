package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	linesDir       = "/lines"
	logWaitMax     = 5 * time.Minute
	logLookEvery   = 10 * time.Millisecond
	askWhileEvery  = 20 * time.Millisecond
	sequenceDigits = 10
)

// writeLines makes a file of numbered lines, each as long as asked for with its newline, and tells how many there are.
func writeLines(path string, lineBytes int, totalBytes int64) (int, error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	line := bytes.Repeat([]byte{'x'}, lineBytes)
	line[sequenceDigits], line[lineBytes-1] = ' ', '\n'
	count := int(totalBytes / int64(lineBytes))
	for i := range count {
		copy(line, fmt.Sprintf("%0*d", sequenceDigits, i))
		if _, err := out.Write(line); err != nil {
			return 0, err
		}
	}
	return count, out.Flush()
}

// checkLog reads a CRI log whole: every line there once, in order, put together again from its parts.
func checkLog(path string, lineBytes, lines int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	next, length := 0, 0
	for {
		entry, err := in.ReadSlice('\n')
		if err == io.EOF && len(entry) == 0 {
			break
		}
		if err != nil {
			return err
		}
		fields := bytes.SplitN(entry[:len(entry)-1], []byte{' '}, 4)
		if len(fields) < 4 {
			return fmt.Errorf("%s: %q is no log entry", path, entry)
		}
		if length == 0 {
			number, err := strconv.Atoi(string(fields[3][:sequenceDigits]))
			if err != nil || number != next {
				return fmt.Errorf("%s: line %d is where %d should be", path, number, next)
			}
			next++
		}
		length += len(fields[3])
		if string(fields[2]) == "F" {
			if length != lineBytes-1 {
				return fmt.Errorf("%s: line %d has %d bytes", path, next-1, length)
			}
			length = 0
		}
	}
	if next != lines {
		return fmt.Errorf("%s: it has %d of %d lines", path, next, lines)
	}
	return nil
}

// lastLineIsThere tells whether the log ends with the last line.
func lastLineIsThere(path string, lineBytes, lines int) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	// Room for the line, its parts and their stamps.
	tail := make([]byte, min(info.Size(), int64(2*lineBytes+256)))
	if _, err := file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return false
	}
	last := fmt.Sprintf(" %0*d ", sequenceDigits, lines-1)
	return bytes.HasSuffix(tail, []byte{'\n'}) && bytes.Contains(tail, []byte(last))
}

// logs has -count containers write -bytes each to their logs, in lines of -line-bytes, and waits until all is there.
func (c *client) logs(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp(c.logDir, "lines")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	lines, err := writeLines(filepath.Join(dir, "lines"), c.lineBytes, c.bytes)
	if err != nil {
		return result{}, err
	}
	writers := make([]pod, c.count)
	each(c.count, c.count, func(i int) { writers[i], _ = c.makeWriter(ctx, i, dir) })
	defer each(c.count, c.count, func(i int) { c.down(ctx, writers[i]) })

	stopAsking := c.keepListing(ctx)
	started := time.Now()
	each(c.count, c.count, func(i int) {
		err := c.rec.timed("StartContainer", func() error {
			_, err := c.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: writers[i].containerID})
			return err
		})
		for err == nil && !lastLineIsThere(c.logPath(i), c.lineBytes, lines) {
			time.Sleep(logLookEvery)
			if time.Since(started) > logWaitMax {
				err = fmt.Errorf("%s is not complete after %s", c.logPath(i), logWaitMax)
				c.rec.fail("logs", err)
			}
		}
	})
	seconds := time.Since(started).Seconds()
	stopAsking()
	each(c.count, c.count, func(i int) {
		if err := checkLog(c.logPath(i), c.lineBytes, lines); err != nil {
			c.rec.fail("logs", err)
		}
		_ = os.Remove(c.logPath(i))
	})
	measured := c.rec.result()
	written := float64(c.count) * float64(lines) * float64(c.lineBytes)
	return result{
		PerSecond: map[string]float64{"megabytes": written / 1e6 / seconds},
		SamplesMs: map[string][]float64{"ListContainers": measured.SamplesMs["ListContainers"]},
		Errors:    measured.Errors,
	}, nil
}

// keepListing asks for all containers again and again until the function that it gives is called.
func (c *client) keepListing(ctx context.Context) func() {
	asking, stopAsking := context.WithCancel(ctx)
	var asked sync.WaitGroup
	asked.Go(func() {
		for asking.Err() == nil {
			_ = c.rec.timed("ListContainers", func() error { return c.listContainers(ctx) })
			time.Sleep(askWhileEvery)
		}
	})
	return func() {
		stopAsking()
		asked.Wait()
	}
}

func (c *client) logPath(i int) string { return filepath.Join(c.podConfig(i).LogDirectory, logName) }

func (c *client) makeWriter(ctx context.Context, i int, dir string) (pod, error) {
	config := c.containerConfig()
	config.Command = []string{"cat", linesDir + "/lines"}
	config.Mounts = []*cri.Mount{{ContainerPath: linesDir, HostPath: dir, Readonly: true}}
	return c.create(ctx, i, config)
}
