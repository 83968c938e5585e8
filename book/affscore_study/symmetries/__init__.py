"""What can be done to a layer and undone in the next: intertwiner groups."""
