package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// holderName is what the process that holds a pod's namespaces is called.
const holderName = "sandbox-holder"

// hold keeps the namespaces that it was started in until it is killed, as the first process of one of them.
func hold() {
	if len(os.Args) > 1 {
		if err := unix.Sethostname([]byte(os.Args[1])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
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
func startHolder(config *cri.PodSandboxConfig) (*holder, error) {
	type started struct {
		holder *holder
		err    error
	}
	result := make(chan started)
	go func() {
		// The kernel tells of the end of this thread, not of the whole process: it has to stay.
		runtime.LockOSThread()
		one, err := launchHolder(config)
		result <- started{one, err}
		select {}
	}()
	outcome := <-result
	return outcome.holder, outcome.err
}

func launchHolder(config *cri.PodSandboxConfig) (*holder, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	flags := namespacesOf(config)
	args := []string{holderName}
	if flags&unix.CLONE_NEWUTS != 0 && config.GetHostname() != "" {
		args = append(args, config.GetHostname())
	}
	command := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        args,
		Dir:         "/",
		Stdout:      write,
		Stderr:      os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL, Setsid: true},
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
