package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// holderName is what the process that holds a pod's namespaces is called.
const holderName = "sandbox-holder"

// setup is what a holder does to its namespaces before it is one.
type setup struct {
	Hostname string
	Netns    string
	Sysctls  map[string]string
}

func (s setup) do() error {
	// Kernel parameters are those of the thread's namespaces.
	runtime.LockOSThread()
	if s.Netns != "" {
		netns, err := os.Open(s.Netns)
		if err != nil {
			return err
		}
		defer netns.Close()
		if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
	}
	if s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return err
		}
	}
	for name, value := range s.Sysctls {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps the namespaces that it was started in until it is killed, as the first process of one of them.
func hold() {
	var wanted setup
	err := json.Unmarshal([]byte(os.Args[1]), &wanted)
	if err == nil {
		err = wanted.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// Whoever started it waits for this.
	fmt.Println("ready")
	os.Stdout.Close()
	for range children {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}

// namespacesOf says which namespaces the pod is to have of its own beside those of its containers and its network.
func namespacesOf(config *cri.PodSandboxConfig) uintptr {
	wanted := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	flags := uintptr(0)
	if wanted.GetIpc() != cri.NamespaceMode_NODE {
		flags |= unix.CLONE_NEWIPC
	}
	if wanted.GetPid() != cri.NamespaceMode_NODE {
		flags |= unix.CLONE_NEWPID
	}
	if wanted.GetNetwork() != cri.NamespaceMode_NODE {
		flags |= unix.CLONE_NEWUTS
	}
	return flags
}

type holder struct {
	pid  int
	exit chan runc.Exit
}

// startHolder returns once the namespaces are there. The holder goes with the shim, however that ends.
func startHolder(config *cri.PodSandboxConfig, bundle, netns string) (*holder, error) {
	type started struct {
		holder *holder
		err    error
	}
	result := make(chan started)
	go func() {
		// The kernel tells of the end of this thread, not of the whole process: it has to stay.
		runtime.LockOSThread()
		one, err := launchHolder(config, bundle, netns)
		result <- started{one, err}
		select {}
	}()
	outcome := <-result
	return outcome.holder, outcome.err
}

// sysctlsOf reads them from the spec that a pause container would have: whoever wrote it has added its own to the pod's.
func sysctlsOf(bundle string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if err != nil {
		return nil, err
	}
	var spec struct {
		Linux struct {
			Sysctl map[string]string `json:"sysctl"`
		} `json:"linux"`
	}
	err = json.Unmarshal(text, &spec)
	return spec.Linux.Sysctl, err
}

func setupOf(config *cri.PodSandboxConfig, bundle, netns string) ([]byte, error) {
	sysctls, err := sysctlsOf(bundle)
	if err != nil {
		return nil, err
	}
	wanted := setup{Netns: netns, Sysctls: sysctls}
	if namespacesOf(config)&unix.CLONE_NEWUTS != 0 {
		wanted.Hostname = config.GetHostname()
	}
	return json.Marshal(wanted)
}

func launchHolder(config *cri.PodSandboxConfig, bundle, netns string) (*holder, error) {
	wanted, err := setupOf(config, bundle, netns)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	command := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{holderName, string(wanted)},
		Dir:         "/",
		Stdout:      write,
		Stderr:      os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: namespacesOf(config), Pdeathsig: syscall.SIGKILL, Setsid: true},
	}
	exit, err := reaper.Default.Start(command)
	write.Close()
	if err != nil {
		return nil, err
	}
	if count, err := read.Read(make([]byte, 1)); count == 0 {
		return nil, fmt.Errorf("the holder of the pod's namespaces did not start: %v", err)
	}
	return &holder{pid: command.Process.Pid, exit: exit}, nil
}
