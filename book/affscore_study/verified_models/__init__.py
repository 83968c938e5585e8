"""The verification of affscore on many networks of three libraries: it sees every call and changes no output."""
