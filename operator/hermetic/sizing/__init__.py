"""Which model fits which GPUs: GPU memory, tensor parallelism, and how long weights take to load. Pure.

`facts.facts_of` derives a model's facts from its `config.json` and the sums of its safetensors headers;
`hermetic.weights.model_folder` reads the folder. `catalogue` holds the GPU sizes and storage of Azure, each value with
its source and whether it is confirmed. `memory.fit` answers Fits, Tight, DoesNotFit or Unknown with the arithmetic
behind it; the answer is never Fits if it rests on an unconfirmed value. Sizes are bytes, times are seconds, rates are
bytes per second unless a name says otherwise.
"""
