"""What all wings share: draws, tests, adjustments, and which numbers are meaningful."""
