package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"google.golang.org/protobuf/encoding/protojson"
)

// act is what is done at a hook. Adjust, Update and Evict are in protobuf's JSON.
type act struct {
	Hook string `json:"hook"`
	// Container is the name of the container that it is for; empty: any, and pods.
	Container string `json:"container"`
	// Times is how often it is done; 0: always.
	Times int `json:"times"`
	// DelayMs is waited before anything else.
	DelayMs int `json:"delayMs"`
	// Crash ends the process, Hang never answers, Veto answers this error, PadBytes makes the answer this much larger.
	Crash    bool   `json:"crash"`
	Hang     bool   `json:"hang"`
	Veto     string `json:"veto"`
	PadBytes int    `json:"padBytes"`

	Adjust json.RawMessage   `json:"adjust"`
	Update []json.RawMessage `json:"update"`
	Evict  []json.RawMessage `json:"evict"`
	// Ask is what is asked for without having been asked, once the hook is answered.
	Ask *unasked `json:"ask"`

	done int
}

type unasked struct {
	Update []json.RawMessage `json:"update"`
	Evict  []json.RawMessage `json:"evict"`
	// Times is how often, all at once; 0: once.
	Times int `json:"times"`
}

type script struct {
	Log    string             `json:"log"`
	Events []string           `json:"events"`
	Policy *api.FailurePolicy `json:"policy"`
	Acts   []*act             `json:"acts"`
}

type plugin struct {
	sync.Mutex
	stub    stub.Stub
	script  script
	evict   []*api.ContainerEviction
	askedTo []*api.ContainerEviction
}

// entry is a line of the log.
type entry struct {
	Hook      string            `json:"hook"`
	Pod       json.RawMessage   `json:"pod,omitempty"`
	Container json.RawMessage   `json:"container,omitempty"`
	Resources json.RawMessage   `json:"resources,omitempty"`
	Overhead  json.RawMessage   `json:"overhead,omitempty"`
	Request   json.RawMessage   `json:"request,omitempty"`
	Pods      []json.RawMessage `json:"pods,omitempty"`
	Ctrs      []json.RawMessage `json:"containers,omitempty"`
	Failed    []json.RawMessage `json:"failed,omitempty"`
	Error     string            `json:"error,omitempty"`
	Runtime   string            `json:"runtime,omitempty"`
	Version   string            `json:"version,omitempty"`
	Config    string            `json:"config,omitempty"`
}

func (p *plugin) read(text string) error {
	if err := json.Unmarshal([]byte(text), &p.script); err != nil {
		return fmt.Errorf("the script is no script: %w", err)
	}
	return nil
}

func (p *plugin) log(line entry) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	text = append(text, '\n')
	p.Lock()
	defer p.Unlock()
	os.Stdout.Write(text)
	if p.script.Log == "" {
		return
	}
	file, err := os.OpenFile(p.script.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	file.Write(text)
}

// next is the first act for the hook that is not used up; an empty one when there is none.
func (p *plugin) next(hook, container string) *act {
	p.Lock()
	defer p.Unlock()
	for _, a := range p.script.Acts {
		if a.Hook != hook || (a.Container != "" && a.Container != container) || (a.Times > 0 && a.done >= a.Times) {
			continue
		}
		a.done++
		return a
	}
	return &act{}
}

func (p *plugin) events() (api.EventMask, error) {
	if len(p.script.Events) == 0 {
		return 0, nil
	}
	return api.ParseEventMask(p.script.Events...)
}

func updatesOf(texts []json.RawMessage) []*api.ContainerUpdate {
	updates := []*api.ContainerUpdate{}
	for _, text := range texts {
		update := &api.ContainerUpdate{}
		must(protojson.Unmarshal(text, update))
		updates = append(updates, update)
	}
	return updates
}

func evictionsOf(texts []json.RawMessage) []*api.ContainerEviction {
	evictions := []*api.ContainerEviction{}
	for _, text := range texts {
		eviction := &api.ContainerEviction{}
		must(protojson.Unmarshal(text, eviction))
		evictions = append(evictions, eviction)
	}
	return evictions
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
