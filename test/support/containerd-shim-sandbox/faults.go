package main

import "os"

// faultAnnotation of a pod has the shim misbehave in one of these ways.
const faultAnnotation = "scribe.example/fault"

type fault string

const (
	// dieAtStart ends the shim when it is asked to start the sandbox.
	dieAtStart fault = "die-at-start"
	// hangInStart holds the pod's namespaces and never answers StartSandbox.
	hangInStart fault = "hang-in-start"
	// hangInStop never answers StopSandbox, and stops nothing.
	hangInStop fault = "hang-in-stop"
	// hangInShutdown never answers ShutdownSandbox, and does not end.
	hangInShutdown fault = "hang-in-shutdown"
	// lieAboutPid says that the sandbox is process 1 of the node.
	lieAboutPid fault = "lie-about-pid"
	// lieAboutID answers SandboxStatus for another sandbox.
	lieAboutID fault = "lie-about-id"
	// floodStatus answers SandboxStatus with more than anybody wants to know.
	floodStatus fault = "flood-status"
)

func (f fault) is(other fault) bool { return f == other }

// end ends the process at once, with nothing tidied up.
func end() { os.Exit(3) }
