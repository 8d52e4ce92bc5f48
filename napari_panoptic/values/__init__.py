"""The values that readers and the engine share."""
