// Judges what scribe writes for verifiers of transparency logs, by libraries that others wrote:
//
//	tlog-judges proof VKEY-FILE PROOF-FILE ENTRY-HEX   inclusion proof, by torchwood
//	tlog-judges note VKEY-FILE NOTE-FILE               signed note, by golang.org/x/mod
//
// Tessera's fsck is a program of its own, which this module pins.
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if err := judge(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println("accepted")
}

func judge(what, vkeyFile, file string, rest []string) error {
	vkey, err := os.ReadFile(vkeyFile)
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(string(vkey[:len(vkey)-1]))
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if what == "note" {
		_, err := note.Open(content, note.VerifierList(verifier))
		return err
	}
	entry, err := hex.DecodeString(rest[0])
	if err != nil {
		return err
	}
	policy := torchwood.ThresholdPolicy(2, torchwood.OriginPolicy(verifier.Name()), torchwood.SingleVerifierPolicy(verifier))
	return torchwood.VerifyProof(policy, tlog.RecordHash(entry), content)
}
