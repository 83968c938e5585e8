"""One network up to a layer, another from it on."""
