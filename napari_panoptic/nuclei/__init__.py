"""From a label pair to metrics, and from files to evaluated regions."""
