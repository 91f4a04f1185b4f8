"""Flows that are not of the layer: named states as one vector, and their events."""
