"""The parts that the audits share: claims with their rules and verdicts, training, and files of results."""
