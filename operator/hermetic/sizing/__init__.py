"""What fits where: memory of GPUs, tensor parallelism, and how long weights take to load. Pure.

`facts.facts_of` derives a model's facts from its `config.json` and the sums of its safetensors headers; reading the
folder is done elsewhere (`hermetic.weights.model_folder`). `catalogue` holds the GPU sizes and storage of Azure, each
value with its source and whether it is confirmed. `memory.fit` answers Fits, Tight, DoesNotFit or Unknown with the
arithmetic behind it; nothing that rests on a value that is not confirmed is ever said to fit. Sizes are bytes, times
are seconds, rates are bytes per second unless a name says otherwise.
"""
