// Command celcheck validates CRDs and admission policies as the API server of this release does: structure, types of
// CEL expressions, and the cost budget. It prints one line for each error and then exits with status 1.
//
// Usage: celcheck FILE... (documents of other kinds are skipped)
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	admissioninstall "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

func main() {
	scheme := runtime.NewScheme()
	apiextensionsinstall.Install(scheme)
	admissioninstall.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	checked, failed := 0, false
	for _, path := range os.Args[1:] {
		count, problems := checkFile(path, codecs.UniversalDecoder(), scheme)
		checked += count
		for _, problem := range problems {
			failed = true
			fmt.Printf("%s: %v\n", path, problem)
		}
	}
	fmt.Printf("%d objects checked\n", checked)
	if failed || checked == 0 {
		os.Exit(1)
	}
}

// checkFile returns how many documents of the file were validated, and every error.
func checkFile(path string, decoder runtime.Decoder, scheme *runtime.Scheme) (int, []error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, []error{err}
	}
	defer file.Close()
	documents, checked, problems := yaml.NewYAMLReader(bufio.NewReader(file)), 0, []error{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return checked, problems
		}
		if err != nil {
			return checked, append(problems, err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) {
			continue
		}
		checked++
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, problem := range validate(object) {
			problems = append(problems, problem)
		}
	}
}

// validate calls what the API server calls before it stores a new object.
func validate(object runtime.Object) field.ErrorList {
	switch object := object.(type) {
	case *apiextensions.CustomResourceDefinition:
		for _, version := range object.Spec.Versions {
			if version.Storage { // the API server fills this in
				object.Status.StoredVersions = []string{version.Name}
			}
		}
		return crdvalidation.ValidateCustomResourceDefinition(context.Background(), object)
	case *admissionregistration.ValidatingAdmissionPolicy:
		return policyvalidation.ValidateValidatingAdmissionPolicy(object)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return policyvalidation.ValidateValidatingAdmissionPolicyBinding(object)
	}
	return nil
}
