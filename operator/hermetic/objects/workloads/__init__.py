"""The kinds of objects that run the pods of a model: how each is built, scaled and read."""
