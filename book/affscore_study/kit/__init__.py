"""What the audits share: claims and their verdicts."""
