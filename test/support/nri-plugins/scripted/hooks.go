package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func told(message proto.Message) json.RawMessage {
	text, err := protojson.Marshal(message)
	must(err)
	return text
}

func toldAll[M proto.Message](messages []M) []json.RawMessage {
	texts := []json.RawMessage{}
	for _, message := range messages {
		texts = append(texts, told(message))
	}
	return texts
}

// act does what the script says of the hook, and gives back what is to be answered.
func (p *plugin) act(hook, container string) (*act, error) {
	a := p.next(hook, container)
	time.Sleep(time.Duration(a.DelayMs) * time.Millisecond)
	if a.Crash {
		os.Exit(9)
	}
	if a.Hang {
		select {}
	}
	p.Lock()
	p.evict = evictionsOf(a.Evict)
	p.Unlock()
	if a.Ask != nil {
		for range max(1, a.Ask.Times) {
			go p.ask(a.Ask)
		}
	}
	if a.Veto != "" {
		return a, errors.New(a.Veto)
	}
	return a, nil
}

func (p *plugin) ask(what *unasked) {
	p.Lock()
	p.askedTo = evictionsOf(what.Evict)
	p.Unlock()
	failed, err := p.stub.UpdateContainers(updatesOf(what.Update))
	line := entry{Hook: "UpdateContainers", Failed: toldAll(failed)}
	if err != nil {
		line.Error = err.Error()
	}
	p.log(line)
}

// withEvictions adds what the stub has no way to say.
func (p *plugin) withEvictions(ctx context.Context, unmarshal ttrpc.Unmarshaler, _ *ttrpc.UnaryServerInfo, method ttrpc.Method) (interface{}, error) {
	answer, err := method(ctx, unmarshal)
	p.Lock()
	defer p.Unlock()
	switch reply := answer.(type) {
	case *api.CreateContainerResponse:
		if reply != nil {
			reply.Evict = p.evict
		}
	case *api.UpdateContainerResponse:
		if reply != nil {
			reply.Evict = p.evict
		}
	}
	return answer, err
}

func (p *plugin) withEvictionsAsked(ctx context.Context, request *ttrpc.Request, response *ttrpc.Response, info *ttrpc.UnaryClientInfo, invoke ttrpc.Invoker) error {
	if request.Method == "UpdateContainers" {
		message := &api.UpdateContainersRequest{}
		must(proto.Unmarshal(request.Payload, message))
		p.Lock()
		message.Evict = p.askedTo
		p.Unlock()
		payload, err := proto.Marshal(message)
		must(err)
		request.Payload = payload
	}
	return invoke(ctx, request, response)
}

func (p *plugin) ofPod(hook string, pod *api.PodSandbox) error {
	p.log(entry{Hook: hook, Pod: told(pod)})
	_, err := p.act(hook, "")
	return err
}

func (p *plugin) ofContainer(hook string, pod *api.PodSandbox, container *api.Container) (*act, error) {
	p.log(entry{Hook: hook, Pod: told(pod), Container: told(container)})
	return p.act(hook, container.GetName())
}

func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	p.log(entry{Hook: "Synchronize", Pods: toldAll(pods), Ctrs: toldAll(containers)})
	a, err := p.act("Synchronize", "")
	return updatesOf(a.Update), err
}

func (p *plugin) Shutdown(context.Context) {
	p.log(entry{Hook: "Shutdown"})
	p.act("Shutdown", "")
}

func (p *plugin) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.ofPod("RunPodSandbox", pod)
}

func (p *plugin) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.ofPod("StopPodSandbox", pod)
}

func (p *plugin) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.ofPod("RemovePodSandbox", pod)
}

func (p *plugin) PostUpdatePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.ofPod("PostUpdatePodSandbox", pod)
}

func (p *plugin) UpdatePodSandbox(_ context.Context, pod *api.PodSandbox, overhead, resources *api.LinuxResources) error {
	p.log(entry{Hook: "UpdatePodSandbox", Pod: told(pod), Overhead: told(overhead), Resources: told(resources)})
	_, err := p.act("UpdatePodSandbox", "")
	return err
}

func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	a, err := p.ofContainer("CreateContainer", pod, container)
	adjust := &api.ContainerAdjustment{}
	if a.Adjust != nil {
		must(protojson.Unmarshal(a.Adjust, adjust))
	}
	if a.PadBytes > 0 {
		adjust.AddAnnotation("padding", strings.Repeat("x", a.PadBytes))
	}
	return adjust, updatesOf(a.Update), err
}

func (p *plugin) PostCreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	_, err := p.ofContainer("PostCreateContainer", pod, container)
	return err
}

func (p *plugin) StartContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	_, err := p.ofContainer("StartContainer", pod, container)
	return err
}

func (p *plugin) PostStartContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	_, err := p.ofContainer("PostStartContainer", pod, container)
	return err
}

func (p *plugin) UpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container, resources *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	p.log(entry{Hook: "UpdateContainer", Pod: told(pod), Container: told(container), Resources: told(resources)})
	a, err := p.act("UpdateContainer", container.GetName())
	return updatesOf(a.Update), err
}

func (p *plugin) PostUpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	_, err := p.ofContainer("PostUpdateContainer", pod, container)
	return err
}

func (p *plugin) StopContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) ([]*api.ContainerUpdate, error) {
	a, err := p.ofContainer("StopContainer", pod, container)
	return updatesOf(a.Update), err
}

func (p *plugin) RemoveContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) error {
	_, err := p.ofContainer("RemoveContainer", pod, container)
	return err
}

func (p *plugin) ValidateContainerAdjustment(_ context.Context, request *api.ValidateContainerAdjustmentRequest) error {
	p.log(entry{Hook: "ValidateContainerAdjustment", Request: told(request)})
	_, err := p.act("ValidateContainerAdjustment", request.GetContainer().GetName())
	return err
}
