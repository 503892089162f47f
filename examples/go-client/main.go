// Command go-client asks an agent a question and prints each text of the answer when it is complete:
//
//	go run ./examples/go-client http://127.0.0.1:8080 "Say hello."
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"parley"
	"parley/client"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: go-client http://host:port QUESTION")
	}
	if err := ask(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// ask sends a question to a new session and prints the answer. It survives lost
// connections and a restart of the server.
func ask(ctx context.Context, server, question string) error {
	c, err := client.New(server, client.Options{Token: os.Getenv("PARLEY_TOKEN"), Patient: true})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Open(ctx, client.NewSession{})
	if err != nil {
		return err
	}
	if _, err := c.Submit(ctx, s.ID, client.Input{Content: question}); err != nil {
		return err
	}
	for u, err := range c.Follow(ctx, client.Log{Session: s.ID}, "") {
		if err != nil {
			return err
		}
		switch b := u.Event.Body.(type) {
		case parley.OutputFinished:
			if b.Kind == parley.Text {
				fmt.Println(b.Text)
			}
		case parley.ApprovalRequested: // no person can approve calls here
			deny := client.Approval{Decision: parley.Deny, Note: "Nobody watches.", Digest: b.Digest}
			if _, err := c.Decide(ctx, parley.Ref(s.ID, u.Event.Seq), deny); err != nil {
				return err
			}
		case parley.RunFinished:
			if b.Outcome != parley.Completed {
				return fmt.Errorf("the run ended as %s: %s", b.Outcome, b.Message)
			}
			return nil
		}
	}
	return nil
}
