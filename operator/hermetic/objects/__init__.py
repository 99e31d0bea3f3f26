"""Pure: one builder per child kind, each returning the dict that the YAML would be."""
