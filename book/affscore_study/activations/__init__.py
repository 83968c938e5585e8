"""Activation functions one by one: a catalogue, and their scores as the range of the inputs moves."""
