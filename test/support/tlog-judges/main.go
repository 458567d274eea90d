// Judges what scribe writes for verifiers of transparency logs, by libraries that others wrote:
//
//	tlog-judges proof VKEY-FILE PROOF-FILE ENTRY-HEX   inclusion proof, by torchwood
//	tlog-judges note VKEY-FILE NOTE-FILE               signed note, by golang.org/x/mod
//
// and cosigns as a witness with a post-quantum key does, of which there is no program:
//
//	tlog-judges cosign NAME SECONDS CHECKPOINT-FILE    its vkey, and its line of signature, by filippo.io/mldsa
//
// Tessera's fsck is a program of its own, which this module pins.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"

	"filippo.io/mldsa"
	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if os.Args[1] == "cosign" {
		if err := cosign(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		return
	}
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

// The key is the same each time.
func cosign(name, secondsText, file string) error {
	seconds, err := strconv.ParseUint(secondsText, 10, 64)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	body, _, _ := bytes.Cut(content, []byte("\n\n"))
	checkpoint, err := torchwood.ParseCheckpoint(string(body) + "\n")
	if err != nil {
		return err
	}
	key, err := mldsa.NewPrivateKey(mldsa.MLDSA44(), make([]byte, 32))
	if err != nil {
		return err
	}
	opaque := func(text string) []byte { return append([]byte{byte(len(text))}, text...) }
	uint64s := func(value uint64) []byte { return binary.BigEndian.AppendUint64(nil, value) }
	message := bytes.Join([][]byte{
		[]byte("subtree/v1\n\x00"), opaque(name), uint64s(seconds), opaque(checkpoint.Origin),
		uint64s(0), uint64s(uint64(checkpoint.N)), checkpoint.Hash[:],
	}, nil)
	signature, err := key.Sign(nil, message, nil)
	if err != nil {
		return err
	}
	public := append([]byte{6}, key.PublicKey().Bytes()...)
	id := sha256.Sum256(append([]byte(name+"\n"), public...))
	line := bytes.Join([][]byte{id[:4], uint64s(seconds), signature}, nil)
	fmt.Printf("%s+%x+%s\n", name, id[:4], base64.StdEncoding.EncodeToString(public))
	fmt.Printf("— %s %s\n", name, base64.StdEncoding.EncodeToString(line))
	return nil
}
