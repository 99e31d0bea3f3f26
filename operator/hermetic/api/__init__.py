"""What users write and read: the models of every kind, condition types, reasons, and the CRDs made from them."""
