"""Programs that run inside the engine's container, as arguments of its Python; nothing of Hermetic imports them."""
