"""Pure: one builder per kind of child, each returning the manifest as a dict."""
