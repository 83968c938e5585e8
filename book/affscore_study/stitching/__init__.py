"""The study of stitching: networks that consist of the first layers of one network and the last layers of another."""
