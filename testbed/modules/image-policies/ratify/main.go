// Command ratify judges images as Ratify does in a cluster: its reconcilers read its objects, which come from a file
// and not from an API server, and its executor verifies. It prints one JSON document for each image.
//
// Usage: ratify OBJECTS IMAGE...
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ratify-project/ratify/api/v1beta1"
	"github.com/ratify-project/ratify/pkg/controllers"
	"github.com/ratify-project/ratify/pkg/controllers/clusterresource"
	"github.com/ratify-project/ratify/pkg/executor"
	"github.com/ratify-project/ratify/pkg/executor/core"
	_ "github.com/ratify-project/ratify/pkg/policyprovider/configpolicy"
	_ "github.com/ratify-project/ratify/pkg/referrerstore/oras"
	_ "github.com/ratify-project/ratify/pkg/verifier/notation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	if err := judge(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// judge prints what Ratify would answer to Gatekeeper for each image. An image that is refused is no error.
func judge(ctx context.Context, path string, images []string) error {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	objects, err := read(path, scheme)
	if err != nil {
		return err
	}
	held := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build()
	for _, object := range objects {
		if err := reconciled(ctx, object, held, scheme); err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
	}
	verifying := core.Executor{
		Verifiers:      controllers.NamespacedVerifiers.GetVerifiers(""),
		ReferrerStores: controllers.NamespacedStores.GetStores(""),
		PolicyEnforcer: controllers.NamespacedPolicies.GetPolicy(""),
	}
	for _, image := range images {
		result, err := verifying.VerifySubject(ctx, executor.VerifyParameters{Subject: image})
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"image": image, "result": result}); err != nil {
			return err
		}
	}
	return nil
}

// read decodes each document of a file; a field that Ratify does not know is an error.
func read(path string, scheme *runtime.Scheme) ([]client.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents, objects := yaml.NewYAMLReader(bufio.NewReader(file)), []client.Object{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		object, ok := decoded.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%s: not an object: %T", path, decoded)
		}
		objects = append(objects, object)
	}
}

// reconciled lets the reconciler of its kind take an object over.
func reconciled(ctx context.Context, object client.Object, held client.Client, scheme *runtime.Scheme) error {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	var reconciler reconcile.Reconciler
	switch object.(type) {
	case *v1beta1.KeyManagementProvider:
		reconciler = &clusterresource.KeyManagementProviderReconciler{Client: held, Scheme: scheme}
	case *v1beta1.Verifier:
		reconciler = &clusterresource.VerifierReconciler{Client: held, Scheme: scheme}
	case *v1beta1.Store:
		reconciler = &clusterresource.StoreReconciler{Client: held, Scheme: scheme}
	case *v1beta1.Policy:
		reconciler = &clusterresource.PolicyReconciler{Client: held, Scheme: scheme}
	default:
		return fmt.Errorf("no reconciler of %T", object)
	}
	_, err := reconciler.Reconcile(ctx, request)
	return err
}
