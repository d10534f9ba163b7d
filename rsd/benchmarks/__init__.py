"""Benchmarks: where questions and gold answers come from."""
