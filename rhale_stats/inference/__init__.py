"""What all wings share: intervals, draws, tests, adjustments, and which numbers are meaningful."""
