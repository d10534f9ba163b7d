"""The tiny family: laptop-sized policies, a process reward model and benchmarks of its own."""
