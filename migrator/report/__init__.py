"""What a run of the codemod found and did, as text and as JSON."""
