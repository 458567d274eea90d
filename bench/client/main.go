// The benchmark's client: drives one CRI socket and prints one JSON object with what it measured. It knows nothing of
// scribe; bench/compare.ts runs it against each runtime in turn and does the statistics.
//
//	client -socket PATH -image NAME [flags] COMMAND
//
//	lifecycle  runs pods with one container each and takes them away again, -parallel at a time
//	rare       runs -count pods with a session of exec in each, -seconds after the one before
//	full       the same with pods as a kubelet makes them: volumes, variables, limits, three containers
//	containers makes -count containers in one pod, one after the other, removes each, and starts none
//	logs       has -count containers write -bytes each to their logs, in lines of -line-bytes, and reads them back
//	exec       runs -count commands, one after the other, in one container
//	fill       runs pods and leaves them
//	dense      the same, while it asks for all containers every 20 ms
//	again      stops the pods that fill left, and makes each anew
//	kubelet    asks what a kubelet asks all day, for -seconds, and runs -count probes by exec meanwhile
//	rates      asks for lists and statuses for -seconds each, from -parallel callers
//	await      says "ready", then waits until ListContainers answers with every container id of the file -ids
//	streams    runs -count sessions of exec and forwarded connections, then moves -bytes out of one, into one, and forwarded
//	exits      has -count containers, ten in a pod, end at once, and times when the events that they STOPPED come
//	clean      stops and removes the pods that this client ever left
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// As the kubelet's: a list of many pods is large.
const messageBytesMax = 16 << 20

type options struct {
	socket       string
	image        string
	cgroupParent string
	logDir       string
	count        int
	parallel     int
	seconds      float64
	lineBytes    int
	bytes        int64
	idsFile      string
}

type client struct {
	options
	runtime cri.RuntimeServiceClient
	images  cri.ImageServiceClient
	rec     *recorder
}

// gRPC's own pauses after a broken connection grow from one second: too coarse to measure a start with.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: betweenTries, Multiplier: 1, MaxDelay: betweenTries},
	MinConnectTimeout: time.Second,
}

func connect(o options) (*client, *grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+o.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(reconnect),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax)))
	if err != nil {
		return nil, nil, err
	}
	return &client{o, cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn), newRecorder()}, conn, nil
}

func run(ctx context.Context, command string, o options) (result, error) {
	if command == "await" {
		return await(ctx, o)
	}
	c, conn, err := connect(o)
	if err != nil {
		return result{}, err
	}
	defer conn.Close()
	commands := map[string]func(context.Context) (result, error){
		"lifecycle":  c.lifecycle,
		"rare":       c.rare,
		"full":       c.full,
		"containers": c.containers,
		"exec":       c.exec,
		"logs":       c.logs,
		"fill":       c.fill,
		"again":      c.again,
		"exits":      c.exits,
		"dense":      c.dense,
		"streams":    c.streams,
		"kubelet":    c.kubelet,
		"rates":      c.rates,
		"clean":      c.clean,
	}
	measure, known := commands[command]
	if !known {
		return result{}, fmt.Errorf("there is no command %q", command)
	}
	return measure(ctx)
}

func parse() (options, string, error) {
	var o options
	flag.StringVar(&o.socket, "socket", "", "path of the CRI socket")
	flag.StringVar(&o.image, "image", "", "image of the containers")
	flag.StringVar(&o.cgroupParent, "cgroup-parent", "", "cgroup that all pods are in")
	flag.StringVar(&o.logDir, "log-dir", os.TempDir(), "directory of the pods' log directories")
	flag.IntVar(&o.count, "count", 20, "pods, commands of exec, or probes of kubelet")
	flag.IntVar(&o.parallel, "parallel", 1, "how many at a time")
	flag.Float64Var(&o.seconds, "seconds", 2, "duration of kubelet, of each of rates' measurements, and of the pauses of rare")
	flag.IntVar(&o.lineBytes, "line-bytes", 80, "length of a line of logs, with its newline")
	flag.Int64Var(&o.bytes, "bytes", 1<<26, "what each container of logs writes, and streams moves")
	flag.StringVar(&o.idsFile, "ids", "", "file with a JSON array of container ids, for await")
	flag.Parse()
	if o.socket == "" || flag.NArg() != 1 {
		return o, "", errors.New("it takes -socket and one command")
	}
	return o, flag.Arg(0), nil
}

func main() {
	o, command, err := parse()
	var measured result
	if err == nil {
		measured, err = run(context.Background(), command, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "client: %v\n", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		os.Exit(1)
	}
}
