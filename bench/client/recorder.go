package main

import (
	"fmt"
	"sync"
	"time"
)

// What every command prints; what a command does not measure is absent.
type result struct {
	// How long each call took, in milliseconds, by the call's name.
	SamplesMs map[string][]float64 `json:"samplesMs,omitempty"`
	PerSecond map[string]float64   `json:"perSecond,omitempty"`
	// What failed, in words: the figures of a run with failures say nothing.
	Errors       []string `json:"errors,omitempty"`
	ContainerIDs []string `json:"containerIds,omitempty"`
	// When await had its answer, by the machine's clock, and how many containers were listed as running.
	AnsweredAtMs float64 `json:"answeredAtMs,omitempty"`
	Running      int     `json:"running,omitempty"`
}

// The first failures are enough to see what is wrong.
const errorsMax = 20

// A recorder collects durations and failures from many goroutines.
type recorder struct {
	mu      sync.Mutex
	samples map[string][]float64
	errors  []string
}

func newRecorder() *recorder { return &recorder{samples: map[string][]float64{}} }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *recorder) add(name string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples[name] = append(r.samples[name], milliseconds(took))
}

func (r *recorder) fail(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) < errorsMax {
		r.errors = append(r.errors, fmt.Sprintf("%s: %v", name, err))
	}
}

// timed makes one call; the time of a call that fails is not counted.
func (r *recorder) timed(name string, call func() error) error {
	started := time.Now()
	err := call()
	if err != nil {
		r.fail(name, err)
		return err
	}
	r.add(name, time.Since(started))
	return nil
}

func (r *recorder) result() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return result{SamplesMs: r.samples, Errors: r.errors}
}
