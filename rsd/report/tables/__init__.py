"""The paper's tables, filled from stored runs."""
