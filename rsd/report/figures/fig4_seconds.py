"""Figure 4 with time for FLOPs: seconds per question against accuracy, of every configuration.

Left: wall-clock seconds of a run over its questions, so that of many questions in flight. Right: median seconds from a
question's first request to its last answer. Both are of the machine, the engine and the concurrency that the run had, and
are taken of whole runs without a memo only. Accuracy, names and marks are those of Figure 4.

    frame = data(source)
    figure = draw(frame)
"""
