"""The study of intertwiner groups, the changes of a layer that the next layer can undo."""
