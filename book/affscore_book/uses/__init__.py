"""What is the score good for? Calls made affine, orders of removal, monitors, and networks trained to a score."""
