package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// rare runs -count pods and a session of exec in each, -seconds after the one before, as most nodes do all day: what a
// runtime has put away meanwhile it has to take out. A kubelet lists once a second all the while.
func (c *client) rare(ctx context.Context) (result, error) {
	if err := c.pull(ctx); err != nil {
		return result{}, err
	}
	listing, stopListing := context.WithCancel(ctx)
	defer stopListing()
	go duty{relistEvery, c.relist}.keepDoing(listing, ctx)
	for i := range c.count {
		time.Sleep(time.Duration(c.seconds * float64(time.Second)))
		made, err := c.up(ctx, i)
		if err == nil {
			c.echo(ctx, made.containerID)
		}
		c.down(ctx, made)
	}
	return c.rec.result(), nil
}

// echo has a session of exec say something and ends it.
func (c *client) echo(ctx context.Context, containerID string) {
	_ = c.rec.timed("ExecSession", func() error {
		var out bytes.Buffer
		err := c.session(ctx, containerID, []string{"echo", "hi"}, nil, &out)
		if err == nil && out.String() != "hi\n" {
			err = fmt.Errorf("it said %q", out.String())
		}
		return err
	})
}
