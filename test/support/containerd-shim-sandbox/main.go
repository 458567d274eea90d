// Command containerd-shim-sandbox-v1 is a shim for tests that offers the sandbox service beside the task service, as
// shims do that hold a pod by themselves. Its tasks are runc's, by containerd's own task service; its sandbox is a process
// that holds the pod's namespaces. An annotation of the pod has it misbehave (see faults.go).
package main

import (
	"context"
	"os"
	"path/filepath"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	runctask "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
)

const runtimeType = "io.scribe.sandbox.v1"

// tasks keeps runc's state below the state directory of whoever asks, where tests look for what is left.
type tasks struct {
	task.TTRPCTaskService
}

func (t tasks) RegisterTTRPC(server *ttrpc.Server) error {
	task.RegisterTTRPCTaskService(server, t)
	return nil
}

func (t tasks) Create(ctx context.Context, request *task.CreateTaskRequest) (*task.CreateTaskResponse, error) {
	if request.Options == nil {
		root := filepath.Join(filepath.Dir(filepath.Dir(request.Bundle)), "runtime")
		chosen, err := typeurl.MarshalAnyToProto(&options.Options{Root: root})
		if err != nil {
			return nil, err
		}
		request.Options = chosen
	}
	return t.TTRPCTaskService.Create(ctx, request)
}

func shutdownOf(ic *plugin.InitContext) (shutdown.Service, error) {
	found, err := ic.GetByID(plugins.InternalPlugin, "shutdown")
	if err != nil {
		return nil, err
	}
	return found.(shutdown.Service), nil
}

func init() {
	registry.Register(&plugin.Registration{
		Type:     plugins.TTRPCPlugin,
		ID:       "task",
		Requires: []plugin.Type{plugins.EventPlugin, plugins.InternalPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			publisher, err := ic.GetByID(plugins.EventPlugin, "publisher")
			if err != nil {
				return nil, err
			}
			end, err := shutdownOf(ic)
			if err != nil {
				return nil, err
			}
			service, err := runctask.NewTaskService(ic.Context, publisher.(shim.Publisher), end)
			if err != nil {
				return nil, err
			}
			return tasks{service}, nil
		},
	})
	registry.Register(&plugin.Registration{
		Type:     plugins.TTRPCPlugin,
		ID:       "sandbox",
		Requires: []plugin.Type{plugins.InternalPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			end, err := shutdownOf(ic)
			if err != nil {
				return nil, err
			}
			return newSandboxes(end), nil
		},
	})
}

func main() {
	if os.Args[0] == holderName {
		hold()
		return
	}
	shim.RunShim(context.Background(), manager.NewShimManager(runtimeType))
}
