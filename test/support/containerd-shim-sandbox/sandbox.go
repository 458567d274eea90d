package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	api "github.com/containerd/containerd/api/runtime/sandbox/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	configType = "runtime.v1.PodSandboxConfig"
	ready      = "SANDBOX_READY"
	notReady   = "SANDBOX_NOTREADY"
	floodBytes = 3 << 20
)

// sandboxes is the sandbox service of one pod: a shim has one sandbox.
type sandboxes struct {
	shutdown shutdown.Service

	mu        sync.Mutex
	id        string
	fault     fault
	config    *cri.PodSandboxConfig
	bundle    string
	netns     string
	holder    *holder
	createdAt time.Time
	exitedAt  time.Time
	status    int
	ended     chan struct{}
}

func newSandboxes(end shutdown.Service) *sandboxes {
	return &sandboxes{shutdown: end, ended: make(chan struct{})}
}

func (s *sandboxes) RegisterTTRPC(server *ttrpc.Server) error {
	api.RegisterTTRPCSandboxService(server, s)
	return nil
}

func refused(kind error, format string, args ...any) error {
	return errgrpc.ToGRPC(fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), kind))
}

// check refuses a sandbox that is not here. Called with the lock held.
func (s *sandboxes) check(id string) error {
	if s.id == "" || s.id != id {
		return refused(errdefs.ErrNotFound, "no sandbox %s", id)
	}
	return nil
}

func (s *sandboxes) CreateSandbox(_ context.Context, r *api.CreateSandboxRequest) (*api.CreateSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return nil, refused(errdefs.ErrAlreadyExists, "sandbox %s", s.id)
	}
	if r.GetOptions().GetTypeUrl() != configType {
		return nil, refused(errdefs.ErrInvalidArgument, "options of type %q", r.GetOptions().GetTypeUrl())
	}
	config := &cri.PodSandboxConfig{}
	if err := proto.Unmarshal(r.GetOptions().GetValue(), config); err != nil {
		return nil, refused(errdefs.ErrInvalidArgument, "options: %v", err)
	}
	s.id = r.GetSandboxID()
	s.config = config
	s.bundle = r.GetBundlePath()
	s.netns = r.GetNetnsPath()
	s.fault = fault(r.GetAnnotations()[faultAnnotation])
	return &api.CreateSandboxResponse{}, nil
}

func (s *sandboxes) StartSandbox(_ context.Context, r *api.StartSandboxRequest) (*api.StartSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(r.GetSandboxID()); err != nil {
		return nil, err
	}
	if s.fault.is(dieAtStart) {
		end()
	}
	if s.holder != nil {
		return nil, refused(errdefs.ErrFailedPrecondition, "sandbox %s was started before", s.id)
	}
	started, err := startHolder(s.config, s.bundle, s.netns)
	if err != nil {
		return nil, refused(errdefs.ErrUnknown, "%v", err)
	}
	s.holder = started
	s.createdAt = time.Now()
	if s.fault.is(hangInStart) {
		select {}
	}
	go s.watch(started)
	pid := uint32(started.pid)
	if s.fault.is(lieAboutPid) {
		pid = 1
	}
	return &api.StartSandboxResponse{Pid: pid, CreatedAt: timestamppb.New(s.createdAt)}, nil
}

func (s *sandboxes) watch(started *holder) {
	for exit := range started.exit {
		if exit.Pid != started.pid {
			continue
		}
		s.mu.Lock()
		s.exitedAt = exit.Timestamp
		s.status = exit.Status
		close(s.ended)
		s.mu.Unlock()
		return
	}
}

func (s *sandboxes) Platform(_ context.Context, r *api.PlatformRequest) (*api.PlatformResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(r.GetSandboxID()); err != nil {
		return nil, err
	}
	return &api.PlatformResponse{Platform: &types.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}}, nil
}

func (s *sandboxes) StopSandbox(ctx context.Context, r *api.StopSandboxRequest) (*api.StopSandboxResponse, error) {
	s.mu.Lock()
	err, held, wrong := s.check(r.GetSandboxID()), s.holder, s.fault
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if wrong.is(hangInStop) {
		select {}
	}
	if held == nil {
		return &api.StopSandboxResponse{}, nil
	}
	_ = syscall.Kill(held.pid, syscall.SIGKILL)
	select {
	case <-s.ended:
		return &api.StopSandboxResponse{}, nil
	case <-time.After(time.Duration(r.GetTimeoutSecs()) * time.Second):
		return nil, refused(errdefs.ErrUnavailable, "the sandbox does not end")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *sandboxes) WaitSandbox(ctx context.Context, r *api.WaitSandboxRequest) (*api.WaitSandboxResponse, error) {
	s.mu.Lock()
	err := s.check(r.GetSandboxID())
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &api.WaitSandboxResponse{ExitStatus: uint32(s.status), ExitedAt: timestamppb.New(s.exitedAt)}, nil
}

func (s *sandboxes) SandboxStatus(_ context.Context, r *api.SandboxStatusRequest) (*api.SandboxStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(r.GetSandboxID()); err != nil {
		return nil, err
	}
	status := &api.SandboxStatusResponse{SandboxID: s.id, State: notReady, CreatedAt: timestamppb.New(s.createdAt)}
	if s.holder != nil {
		status.Pid = uint32(s.holder.pid)
		if s.exitedAt.IsZero() {
			status.State = ready
		} else {
			status.ExitedAt = timestamppb.New(s.exitedAt)
		}
	}
	if r.GetVerbose() {
		status.Info = map[string]string{"netns": s.netns, "hostname": s.config.GetHostname()}
		if s.fault.is(floodStatus) {
			status.Info["flood"] = strings.Repeat("x", floodBytes)
		}
	}
	if s.fault.is(lieAboutID) {
		status.SandboxID = "another"
	}
	return status, nil
}

func (s *sandboxes) PingSandbox(_ context.Context, r *api.PingRequest) (*api.PingResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(r.GetSandboxID()); err != nil {
		return nil, err
	}
	return &api.PingResponse{}, nil
}

func (s *sandboxes) ShutdownSandbox(
	_ context.Context, r *api.ShutdownSandboxRequest,
) (*api.ShutdownSandboxResponse, error) {
	s.mu.Lock()
	wrong := s.fault
	s.mu.Unlock()
	if wrong.is(hangInShutdown) {
		select {}
	}
	s.shutdown.Shutdown()
	return &api.ShutdownSandboxResponse{}, nil
}

func (s *sandboxes) SandboxMetrics(
	_ context.Context, r *api.SandboxMetricsRequest,
) (*api.SandboxMetricsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(r.GetSandboxID()); err != nil {
		return nil, err
	}
	data, err := typeurl.MarshalAnyToProto(wrapperspb.UInt64(uint64(time.Since(s.createdAt))))
	if err != nil {
		return nil, err
	}
	return &api.SandboxMetricsResponse{
		Metrics: &types.Metric{Timestamp: timestamppb.Now(), ID: s.id, Data: data},
	}, nil
}
