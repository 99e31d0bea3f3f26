"""What leads to the pods of a model from outside, and which addresses are private or belong to another model."""
