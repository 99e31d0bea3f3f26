// Command signatures verifies what cosign and notation verify, by the packages behind their commands: the whole programs
// bring the SDK of every cloud. Each subcommand is the one of that program with the flags for a key and no network.
//
//	signatures cosign-verify KEY REFERENCE               cosign verify --key KEY --insecure-ignore-tlog
//	signatures cosign-verify-attestation KEY TYPE REFERENCE
//	signatures notation-verify CERTIFICATE REFERENCE     notation verify, with the certificate in the trust store
//
// The registry is one of plain HTTP. Exit status 1 and one line where the program would refuse.
package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	predicates "github.com/sigstore/cosign/v3/cmd/cosign/cli/options"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/oci"
	sigs "github.com/sigstore/cosign/v3/pkg/signature"
	"oras.land/oras-go/v2/registry/remote"
)

func main() {
	arguments := os.Args[1:]
	commands := map[string]func(context.Context, []string) error{
		"cosign-verify/2":             cosignVerify,
		"cosign-verify-attestation/3": cosignVerifyAttestation,
		"notation-verify/2":           notationVerify,
	}
	err := errors.New("usage: signatures COMMAND KEY [TYPE] REFERENCE")
	if len(arguments) > 0 {
		if command, ok := commands[fmt.Sprintf("%s/%d", arguments[0], len(arguments)-1)]; ok {
			err = command(context.Background(), arguments[1:])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// options are those of `cosign verify --key KEY --insecure-ignore-tlog`.
func options(ctx context.Context, key string, claims func(oci.Signature, v1.Hash, map[string]interface{}) error) (*cosign.CheckOpts, error) {
	loaded, err := sigs.PublicKeyFromKeyRefWithHashAlgo(ctx, key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return &cosign.CheckOpts{SigVerifier: loaded, IgnoreTlog: true, Offline: true, ClaimVerifier: claims}, nil
}

func cosignVerify(ctx context.Context, arguments []string) error {
	opts, err := options(ctx, arguments[0], cosign.SimpleClaimVerifier)
	if err != nil {
		return err
	}
	reference, err := name.ParseReference(arguments[1], name.Insecure)
	if err != nil {
		return err
	}
	verified, _, err := cosign.VerifyImageSignatures(ctx, reference, opts)
	if err != nil {
		return err
	}
	return printPayloads(verified)
}

func cosignVerifyAttestation(ctx context.Context, arguments []string) error {
	opts, err := options(ctx, arguments[0], cosign.IntotoSubjectClaimVerifier)
	if err != nil {
		return err
	}
	reference, err := name.ParseReference(arguments[2], name.Insecure)
	if err != nil {
		return err
	}
	verified, _, err := cosign.VerifyImageAttestations(ctx, reference, opts)
	if err != nil {
		return err
	}
	wanted, err := predicates.ParsePredicateType(arguments[1])
	if err != nil {
		return err
	}
	matched := 0
	for _, attestation := range verified {
		statement, err := statementOf(attestation)
		if err != nil {
			return err
		}
		if statement.PredicateType == wanted {
			fmt.Println(string(statement.text))
			matched++
		}
	}
	if matched == 0 {
		return fmt.Errorf("none of the attestations matched the predicate type: %s", wanted)
	}
	return nil
}

// statement is an in-toto statement, as far as this program reads it.
type statement struct {
	PredicateType string `json:"predicateType"`
	text          []byte
}

func statementOf(attestation oci.Signature) (*statement, error) {
	content, err := attestation.Payload()
	if err != nil {
		return nil, err
	}
	envelope := struct {
		Payload []byte `json:"payload"`
	}{}
	if err := json.Unmarshal(content, &envelope); err != nil {
		return nil, err
	}
	decoded := &statement{text: envelope.Payload}
	return decoded, json.Unmarshal(envelope.Payload, decoded)
}

func printPayloads(signatures []oci.Signature) error {
	for _, signature := range signatures {
		payload, err := signature.Payload()
		if err != nil {
			return err
		}
		fmt.Println(string(payload))
	}
	return nil
}

// trusted is a trust store of one certificate.
type trusted struct{ certificate *x509.Certificate }

func (t trusted) GetCertificates(context.Context, truststore.Type, string) ([]*x509.Certificate, error) {
	return []*x509.Certificate{t.certificate}, nil
}

func notationVerify(ctx context.Context, arguments []string) error {
	content, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return fmt.Errorf("%s is no certificate in PEM", arguments[0])
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	document := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
		Name:                  "hermetic",
		RegistryScopes:        []string{"*"},
		SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: "strict"},
		TrustStores:           []string{"ca:hermetic"},
		TrustedIdentities:     []string{"*"},
	}}}
	judge, err := verifier.New(document, trusted{certificate}, nil)
	if err != nil {
		return err
	}
	repository, err := remote.NewRepository(arguments[1])
	if err != nil {
		return err
	}
	repository.PlainHTTP = true
	descriptor, outcomes, err := notation.Verify(ctx, judge, registry.NewRepository(repository), notation.VerifyOptions{
		ArtifactReference: arguments[1], MaxSignatureAttempts: 10,
	})
	if err != nil {
		return err
	}
	metadata, err := outcomes[0].UserMetadata()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"digest": descriptor.Digest, "metadata": metadata})
}
