"""The study of the decade in miniature: small networks of many architectures, trained on the same images alike."""
